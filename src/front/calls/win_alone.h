// Windows of one process that the library does not make: their accesses are copies and reductions here.
//
// Open MPI 4.1.4 has no window over memory given to it on a communicator of one process at
// MPI_THREAD_MULTIPLE (component pt2pt refuses the level, rdma one process). It has MPI_Win_allocate and
// MPI_Win_allocate_shared there (component sm), whose memory is its own; ours has to be in the image. Such a
// window has no real one: `alone`. Epochs are noted and nothing else, every access is complete when its call
// returns, and a restart finds nothing to make again.
#pragma once

#include "front/objects/win.h"

namespace fermata::front {

inline const WinObject* alone(mpi::Win win) noexcept {
    const WinObject* object = find_win(static_cast<uint32_t>(win));
    return object != nullptr && __builtin_expect(object->alone, 0) ? object : nullptr;
}

namespace single {

using mpi::Aint;
using mpi::Count;
using mpi::Datatype;
using mpi::Op;

int Put(const WinObject& win, const void* origin, Count count, Datatype type, int rank, Aint disp,
        Count target_count, Datatype target_type) noexcept;
int Get(const WinObject& win, void* origin, Count count, Datatype type, int rank, Aint disp,
        Count target_count, Datatype target_type) noexcept;
int Accumulate(const WinObject& win, const void* origin, Count count, Datatype type, int rank, Aint disp,
               Count target_count, Datatype target_type, Op op) noexcept;
int Get_accumulate(const WinObject& win, const void* origin, Count count, Datatype type, void* result,
                   Count result_count, Datatype result_type, int rank, Aint disp, Count target_count,
                   Datatype target_type, Op op) noexcept;
int Fetch_and_op(const WinObject& win, const void* origin, void* result, Datatype type, int rank, Aint disp,
                 Op op) noexcept;
int Compare_and_swap(const WinObject& win, const void* origin, const void* compare, void* result,
                     Datatype type, int rank, Aint disp) noexcept;
inline int Win_flush(const WinObject&, int) noexcept { return 0; }
inline int Win_flush_local(const WinObject&, int) noexcept { return 0; }
inline int Win_flush_all(const WinObject&) noexcept { return 0; }
inline int Win_flush_local_all(const WinObject&) noexcept { return 0; }
inline int Win_sync(const WinObject&) noexcept { return 0; }

}  // namespace single
}  // namespace fermata::front
