// How many ranks share this node, as the launcher says it.
#pragma once
#include <algorithm>
#include <cstdlib>

namespace fermata::lower {

// 0: it does not say (srun, for one).
inline int node_ranks() {
    for (const char* name : {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"})
        if (const char* value = std::getenv(name)) return std::max(0, std::atoi(value));
    return 0;
}

}  // namespace fermata::lower
