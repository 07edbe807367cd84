// Parts of which the generated pass-through wrappers are made (tools/fmgen/passthrough.py). The entries fm_X
// that are written by hand stand in this folder's .cpp files, one file for a chapter of MPI; those of
// messages, requests and waits in front/requests.
#pragma once

#include "front/calls/win_alone.h"
#include "front/core/call.h"
#include "front/core/lower.h"
#include "front/objects/real.h"
#include "front/requests/collective.h"
#include "front/requests/foreign.h"
#include "front/requests/logged.h"

namespace fermata::front {

// A file's data access moves with the clock of the private communicator that MPI_File_open made; null: an
// unknown handle, the real library reports the error.
inline clock::Comm* clock_of(mpi::File fh) noexcept {
    FileObject* file = find(fh);
    return file != nullptr && file->comm != nullptr ? file->comm->clock : nullptr;
}

// A communicator to pack for: any is as good where all processes are alike.
inline mpi::RealComm for_packing(mpi::Comm comm) noexcept {
    return to_real(logged::on() ? mpi::FM_COMM_SELF : comm);
}

}  // namespace fermata::front
