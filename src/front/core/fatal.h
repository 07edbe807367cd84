// The last words of the front: usable in any context, also before the lower half is known.
#pragma once

namespace fermata::front {

// One line to the user, then the whole job ends (through the lower half when there is one).
[[noreturn]] void fatal_line(const char* line) noexcept;
// Several pieces (null-terminated list) joined into one line.
[[noreturn]] void fatal_join(const char* const* pieces) noexcept;

}  // namespace fermata::front
