// What the generated pass-through wrappers are made of (tools/fmgen/passthrough.py).
#pragma once

#include "front/core/call.h"
#include "front/core/collective.h"
#include "front/core/lower.h"
#include "front/objects/real.h"

namespace fermata::front {

// A file's data access moves with the clock of the private communicator that MPI_File_open made.
inline mpi::Comm comm_of(mpi::File fh) noexcept {
    FileObject* file = find(fh);
    return file != nullptr && file->comm != nullptr ? mpi::Comm{file->comm->handle} : mpi::FM_COMM_NULL;
}

// A virtual request for a library request that the ledger has no interest in (file access, one-sided).
mpi::Request adopt_request(Call& call, mpi::RealRequest real) noexcept;

}  // namespace fermata::front
