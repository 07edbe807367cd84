// How many ranks share this node, as the launcher says it.
#pragma once
#include <algorithm>

#include "base/environment.h"

namespace fermata::lower {

// Ranks of this node as the launcher says; 0: it does not say (srun, for one).
inline int node_ranks() {
    return std::max(0, number_from({"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"}, 0));
}

}  // namespace fermata::lower
