// How to ask whether a receive has ended, without freeing its request: see spent_receive.h for what for.
#pragma once

#include "fermata_table.h"

namespace fermata::lower {

// Turns the library's engine and looks, for some microseconds or until *stop. 1: the message is there, of at
// most `room` bytes; *status is of the library's own, but for its MPI_ERROR. 0: not yet. -1: something is
// wrong with it, which MPI_Test says. Null while the library cannot be asked without missing that a message
// was longer than its buffer.
extern mpi::Direct::Look look_at_receive;

// Sets it, by messages to oneself. Errors return.
void find_look();

}  // namespace fermata::lower
