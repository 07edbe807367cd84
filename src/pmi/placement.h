// Placement says which node holds which ranks of a world, as ranges: its size does not grow with the ranks of
// a node. It is the process mapping of PMI, from which MPICH learns who shares memory.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

namespace fermata::pmi {

struct Range {
    uint32_t first = 0, count = 0;
    bool holds(uint32_t rank) const { return rank >= first && rank - first < count; }
    auto operator<=>(const Range&) const = default;
};

// The next `nodes` * `ranks_per_node` ranks are on `nodes` nodes beginning with `first_node`, in turn.
struct Block {
    uint32_t first_node = 0, nodes = 0, ranks_per_node = 0;
    auto operator<=>(const Block&) const = default;
};

inline constexpr uint32_t kMostRanks = 10'000'000;

class Placement {
  public:
    // The next `ranks` ranks are on `node`. Throws Error above kMostRanks.
    void add(uint32_t node, uint32_t ranks);
    // The same, for what came over a wire.
    static Placement of(const std::vector<Block>& blocks);
    static Placement on_one_node(uint32_t ranks);

    uint32_t ranks() const { return ranks_; }
    // Number of the last node that holds a rank, plus one.
    uint32_t nodes() const { return nodes_; }
    // Throws Error for a rank that does not exist.
    uint32_t node_of(uint32_t rank) const;
    // In ascending order, neighbours joined.
    std::vector<Range> ranks_on(uint32_t node) const;
    const std::vector<Block>& blocks() const { return blocks_; }
    // "(vector,(0,2,4))"
    std::string mapping() const;

  private:
    void append(const Block& block);

    std::vector<Block> blocks_;
    uint32_t ranks_ = 0, nodes_ = 0;
};

}  // namespace fermata::pmi
