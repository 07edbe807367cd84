#include "front/core/fatal.h"

#include "front/core/front.h"
#include "front/core/line.h"
#include "front/core/sys.h"

namespace fermata::front {

void fatal_line(const char* line) noexcept {
    if (fermata_upper.bridge != nullptr) fermata_upper.bridge->fatal(line, 70);  // EX_SOFTWARE
    sys(SYS_write, 2, reinterpret_cast<long>(line), static_cast<long>(__builtin_strlen(line)));
    sys(SYS_write, 2, reinterpret_cast<long>("\n"), 1);
    for (;;) sys(SYS_exit_group, 70);
}

void fatal_join(const char* const* pieces) noexcept {
    char text[512];
    Line line(text, sizeof text);
    for (; *pieces != nullptr; pieces++) line << *pieces;
    fatal_line(text);
}

}  // namespace fermata::front
