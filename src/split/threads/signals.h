// Signals between the halves, the lower side. The upper side (interposed sigaction and friends) is
// src/front/posix.
#pragma once

#include <cstdint>

namespace fermata::split::threads {

// Lower main, first thing: blocks every signal, so that all threads that MPI_Init makes inherit a full mask
// and never run a handler of the application. Returns the mask that `unblock_for_upper` restores.
uint64_t block_signals_for_init();
// Lower main, right before the upper half starts. `later`: those stay blocked until the front takes care of
// them.
void unblock_for_upper(uint64_t mask, uint64_t later);

}  // namespace fermata::split::threads
