// Nodes says which ranks share a node's memory, and which rank keeps a copy for which: its buddy, on another
// node.
#pragma once

#include <string>
#include <vector>

namespace fermata::api {

class Nodes {
  public:
    // `place`: what names each rank's node, by rank.
    explicit Nodes(const std::vector<std::string>& place);

    int count() const { return static_cast<int>(leaders_.size()); }
    int node_of(int rank) const { return node_[static_cast<size_t>(rank)]; }
    // The lowest rank of a node.
    int leader(int node) const { return leaders_[static_cast<size_t>(node)]; }

    // The rank that keeps a copy of this rank's image. Only with several nodes.
    int buddy(int rank) const { return buddy_[static_cast<size_t>(rank)]; }
    // Copies go in rounds: in each, a rank sends to one at most and receives from one at most.
    int rounds() const { return rounds_; }
    // Whom this rank sends to, and receives from, in a round; -1: nobody.
    int sends_to(int rank, int round) const;
    int receives_from(int rank, int round) const;

  private:
    std::vector<int> node_, leaders_, buddy_, round_;
    std::vector<std::vector<int>> senders_;  // of each rank, by round
    int rounds_ = 0;
};

}  // namespace fermata::api
