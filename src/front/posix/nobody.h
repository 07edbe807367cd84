// Upper threads that have not called MPI: their GS base is not 0 but points at a record that fits no thread,
// so that split::calling_thread() may read through it.
#pragma once

#include <cstdint>

namespace fermata::front {
// The GS base of such threads.
uint64_t nobody_gs() noexcept;
// The calling thread has no record (any more).
void become_nobody() noexcept;
}  // namespace fermata::front
