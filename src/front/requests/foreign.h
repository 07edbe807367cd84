// Requests for what is none of point-to-point or collective: operations of files and windows, and what is
// done on the spot.
#pragma once

#include "fermata_types.h"

namespace fermata::front {

// A request that is complete already (an operation done on the spot behind a non-blocking name).
mpi::Request request_completed() noexcept;
// A request for an operation of the real library that is none of point-to-point or collective (file input and
// output, one-sided): a checkpoint waits until it is complete.
mpi::Request request_foreign(mpi::RealRequest real, mpi::Comm errors_on) noexcept;
// Likewise for a non-blocking collective of a file; those of one file end in the order they began.
mpi::Request request_of_file(mpi::RealRequest real, mpi::File fh) noexcept;

}  // namespace fermata::front
