// Topologies: pure arithmetic on Cartesian grids, and the real counterpart of a description.
#pragma once

#include "fermata_types.h"
#include "front/objects/comm.h"

namespace fermata::front {

// Rank at these coordinates, wrapped in periodic dimensions; -1 outside of others.
int cart_rank_of(const Topology& cart, const int* coords) noexcept;
void cart_coords_of(const Topology& cart, int rank, int* coords) noexcept;

// A real communicator like `base`, with the topology, ranks unchanged. Collective over base. Agent context.
int topology_apply(const Topology& topology, mpi::RealComm base, mpi::RealComm* made) noexcept;

}  // namespace fermata::front
