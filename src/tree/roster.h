// Which ranks the root has heard of, and whether what they say of the job fits together. It grows with ranks
// that are there, not with numbers that somebody claims.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "wire/message.h"

namespace fermata::tree {

inline constexpr int32_t kMostRanks = 10'000'000;

class Roster {
  public:
    struct Rank {
        int node = -1;  // key of Tree::nodes
        int pid = 0;
    };

    // "", or why this rank cannot be one of this job: one line.
    std::string join(int node, const wire::Hello& hello);
    // False: it was not there, or at another node.
    bool leave(int node, int32_t rank);
    // How many went with it.
    size_t lose(int node);

    int size() const { return size_; }  // 0: no rank has come yet
    int here() const { return static_cast<int>(ranks_.size()); }
    bool complete() const { return size_ > 0 && here() == size_; }
    const std::map<int32_t, Rank>& ranks() const { return ranks_; }
    // "3, 7-9", not much longer than `most` characters.
    std::string missing(size_t most) const;

  private:
    int32_t size_ = 0;
    std::map<int32_t, Rank> ranks_;
};

}  // namespace fermata::tree
