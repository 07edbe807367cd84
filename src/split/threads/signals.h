// Signals between the halves, the lower side. The upper side (interposed sigaction and friends) is src/front/posix.
#pragma once

#include <cstdint>

namespace fermata::split::threads {

// Lower main, first thing: blocks every signal, so that all threads that MPI_Init makes inherit a full mask and
// never run a handler of the application. Returns the mask that `unblock_for_upper` restores.
uint64_t block_signals_for_init();
// Lower main, right before the upper half starts.
void unblock_for_upper(uint64_t mask);

// Resets crash handlers (SEGV, BUS, ILL, FPE, ABRT, TRAP, SYS) that the MPI library installed: they would run with
// the upper half's thread pointer. `lower_code_start`: handlers at or above are the lower half's.
void drop_lower_handlers(uint64_t lower_code_start);

}  // namespace fermata::split::threads
