// Which ranks the root has heard of, node by node, and whether what they say of the job fits together. It
// grows with ranks that are there, not with numbers that somebody claims: runs, and four bytes a rank.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tree/ranks.h"

namespace fermata::tree {

class Roster {
  public:
    struct Place {
        Ranks ranks;
        std::vector<int32_t> pids;  // in the order of `ranks`
    };

    // "", or why these ranks cannot be of this job: one line. `node`: key of Tree::nodes.
    std::string join(int node, const wire::Group& group);
    // Takes these ranks from a node, and gives those that were there.
    Ranks leave(int node, const Ranks& ranks);
    // The node that has this rank; -1: none.
    int node_of(int32_t rank) const;
    Ranks ranks_at(int node) const;
    // This rank is another process now.
    void moved(int32_t rank, int32_t pid);
    // How many went with it.
    size_t lose(int node);

    int size() const { return size_; }  // 0: no rank has come yet
    int here() const { return static_cast<int>(here_.count()); }
    int at(int node) const;
    bool complete() const { return size_ > 0 && here() == size_; }
    const std::map<int, Place>& places() const { return places_; }
    // "3, 7-9", not much longer than `most` characters.
    std::string missing(size_t most) const;

  private:
    int32_t size_ = 0;
    Ranks here_;
    std::map<int, Place> places_;  // of nodes with ranks
};

}  // namespace fermata::tree
