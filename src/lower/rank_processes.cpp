#include "lower/rank_processes.h"

#include <mpi.h>

#include "base/error.h"
#include "base/rank.h"
#include "lower/binding/binding.h"
#include "lower/binding/library.h"

namespace fermata::lower {

std::vector<split::ids::RankProcess> exchange_processes(uint64_t private_world, int size,
                                                        const split::ids::RankProcess& mine) {
    using split::ids::RankProcess;
    const mpi::RealDatatype byte = real_Datatype(MPI_BYTE);
    constexpr int kBytes = sizeof(RankProcess);
    std::vector<RankProcess> physical(static_cast<size_t>(size)), all(physical.size());
    if (int code = binding_table().Allgather(&mine, kBytes, byte, physical.data(), kBytes, byte,
                                             mpi::RealComm{private_world}))
        fail("MPI_Allgather failed (MPI error class {})", code);
    for (int i = 0; i < size; ++i)
        all[static_cast<size_t>(played_by(PhysicalRank(i)).number())] = physical[static_cast<size_t>(i)];
    return all;
}

}  // namespace fermata::lower
