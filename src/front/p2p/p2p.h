// What other rooms of the front may ask of the point-to-point room.
#pragma once

#include "fermata_types.h"

namespace fermata::front {

struct CommObject;

// Objects room, when the application's last reference to a communicator is gone and the object is unlinked,
// before it is destroyed: drops pulled messages that nobody can receive any more.
void p2p_comm_gone(CommObject& comm) noexcept;

// The lock under which all calls into the lower half are made while a checkpoint is pending. The objects room
// takes it to link and unlink communicators, because a pull walks their list.
void p2p_lock() noexcept;
void p2p_unlock() noexcept;

// A request that is complete already (an operation done on the spot behind a non-blocking name).
mpi::Request request_completed() noexcept;
// A request for an operation of the real library that is none of point-to-point or collective (file input and
// output, one-sided): a checkpoint waits until it is complete.
mpi::Request request_foreign(mpi::RealRequest real, mpi::Comm errors_on) noexcept;
// Likewise for a non-blocking collective of a file; those of one file end in the order they began.
mpi::Request request_of_file(mpi::RealRequest real, mpi::File fh) noexcept;

}  // namespace fermata::front
