// Arguments of MPI_Sendrecv and its kin: a message out, and one in (MPI-4.0 3.10).
#pragma once

#include "fermata_types.h"
#include "front/objects/comm.h"

namespace fermata::front {

struct Exchange {
    const void* sendbuf;
    mpi::Count sendcount;
    mpi::Datatype sendtype;
    int dest, sendtag;
    void* recvbuf;
    mpi::Count recvcount;
    mpi::Datatype recvtype;
    int source, recvtag;
    CommObject* comm;
};

}  // namespace fermata::front
