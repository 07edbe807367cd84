// Placement says which node holds which ranks of a world, as ranges: its size does not grow with the ranks of
// a node. It is the process mapping of PMI, from which MPICH learns who shares memory.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "base/rank.h"

namespace fermata::pmi {

// The next `nodes` * `ranks_per_node` ranks are on `nodes` nodes beginning with `first_node`, in turn.
struct Block {
    uint32_t first_node = 0, nodes = 0, ranks_per_node = 0;
    auto operator<=>(const Block&) const = default;
};

class Placement {
  public:
    // The next `ranks` ranks are on `node`. Throws Error above Rank::kMost.
    void add(uint32_t node, uint32_t ranks);
    // The same, for what came over a wire.
    static Placement of(const std::vector<Block>& blocks);
    static Placement on_one_node(uint32_t ranks);
    // Any assignment: the node of each rank, in the order of ranks.
    static Placement by_rank(const std::vector<uint32_t>& nodes);
    // The same but for one rank, which is on that node. Throws Error for a rank that does not exist.
    Placement moved(Rank rank, uint32_t node) const;

    uint32_t ranks() const { return ranks_; }
    // Number of the last node that holds a rank, plus one.
    uint32_t nodes() const { return nodes_; }
    // Throws Error for a rank that does not exist.
    uint32_t node_of(Rank rank) const;
    // In ascending order, neighbours joined.
    std::vector<RankRange> ranks_on(uint32_t node) const;
    const std::vector<Block>& blocks() const { return blocks_; }
    // Numbers of the nodes that hold ranks, ascending.
    std::vector<uint32_t> nodes_with_ranks() const;
    // "(vector,(0,2,4))". Nodes without ranks are left out and those behind them counted on: MPICH takes the
    // greatest number for the number of nodes, and asks the first rank of each.
    std::string mapping() const;

  private:
    void append(const Block& block);

    std::vector<Block> blocks_;
    uint32_t ranks_ = 0, nodes_ = 0;
};

}  // namespace fermata::pmi
