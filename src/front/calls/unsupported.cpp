#include "front/calls/unsupported.h"

#include "fermata_types.h"
#include "front/core/bridge.h"
#include "front/core/call.h"
#include "front/core/line.h"

namespace fermata::front {

int unsupported(const char* function) noexcept {
    char text[160];
    Line(text, sizeof text) << function
                            << ": not supported by fermata; run `fermata run --check` on the program";
    if (bridge() != nullptr) bridge()->warn(text);
    return raise_default(mpi::FM_ERR_UNSUPPORTED_OPERATION, function);
}

int refused(const char* function, const char* why) noexcept {
    char text[200];
    Line(text, sizeof text) << function << ": not supported by fermata: " << why;
    if (bridge() != nullptr) bridge()->warn(text);
    return mpi::FM_ERR_UNSUPPORTED_OPERATION;
}

}  // namespace fermata::front
