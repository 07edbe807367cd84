// A World is what the ranks that call MPI_Init together are told of each other: how many they are, where they
// are, and which program of the command line each one runs. A restart in place makes a new one, with a new
// epoch.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "pmi/placement.h"

namespace fermata::pmi {

struct World {
    uint32_t epoch = 0;
    std::string name =
        "world";  // of the key space (PMI-1) or namespace (PMIx): letters, digits, '-', '_', '.'
    Placement placement;
    uint32_t node = 0;  // this daemon's number in `placement`
    // Ranks of each program of an MPMD command line, in order; empty = one program.
    std::vector<uint32_t> programs;
    uint32_t universe = 0;           // slots of the allocation; 0 = as many as ranks
    uint32_t cores = 0;              // that the ranks of this node may use; 0 = not known
    std::vector<std::string> hosts;  // by node; PMIx only

    uint32_t size() const { return placement.ranks(); }
    // MPI_APPNUM of a rank.
    uint32_t program_of(Rank rank) const;
    // Throws Error, in one line, if this cannot be a world.
    void check() const;
};

}  // namespace fermata::pmi
