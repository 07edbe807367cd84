// The real MPI library's start and end. In the lower half only this, meeting.cpp, shared_ranks.cpp and the
// binding see mpi.h.
#pragma once

#include <cstdint>
#include <string>

#include "base/rank.h"

namespace fermata::lower {

// How many threads the application may use MPI from; decided before the application runs.
enum class ThreadNeed { one, many };

struct MpiFacts {
    PhysicalRank process{0};
    uint32_t size = 1;
    Rank rank() const { return played_by(process); }
    int thread_level = 0;        // standard-ABI value of what the application may count on
    bool many_threads = false;   // MPI was asked to serve several at once
    bool crowded = false;        // this node has more ranks than cores
    uint64_t private_world = 0;  // RealComm, see split::Bridge
    std::string library;         // "openmpi" or "mpich"
    std::string version;         // first line of MPI_Get_library_version
};

// MPI_Init_thread; errors return from here on. Throws fermata::Error.
MpiFacts start_mpi(ThreadNeed need);
// MPI_Finalize, unless it was done. Any thread that may call MPI.
void finish_mpi();

}  // namespace fermata::lower
