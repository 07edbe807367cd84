#include "front/wrappers/unsupported.h"

#include <initializer_list>

#include "fermata_types.h"
#include "front/core/bridge.h"
#include "front/core/call.h"

namespace fermata::front {

int unsupported(const char* function) noexcept {
    char line[160];
    size_t n = 0;
    for (const char* piece :
         {function, ": not supported by fermata; run `fermata run --check` on the program"})
        while (*piece != 0 && n + 1 < sizeof line) line[n++] = *piece++;
    line[n] = 0;
    if (bridge() != nullptr) bridge()->warn(line);
    return raise_default(mpi::FM_ERR_UNSUPPORTED_OPERATION, function);
}

}  // namespace fermata::front
