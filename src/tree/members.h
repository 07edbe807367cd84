// Members are the daemons of a job as the root knows them: which stand where, which have left and may come
// back, which are lost. No I/O; times are given.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tree/pulse.h"
#include "tree/shape.h"
#include "wire/message.h"

namespace fermata::tree {

struct NodeInfo {
    std::string host;
    int pid = 0;
    uint32_t ranks = 0;
    std::string addresses;  // where other daemons reach it
    int parent = kRoot;
    int64_t away_until = 0;  // ms: it stands nowhere, and is lost then; 0 = it stands below its parent
    bool coming = false;     // away because it has not come to its first parent yet
    bool silent = false;     // away because it was not heard
};

class Members {
  public:
    Members(size_t radix, Rhythm rhythm) : shape_(radix), rhythm_(rhythm) {}

    void stay_flat() { shape_ = Shape(1'000'000'000); }
    // Its number. It stands below the root, or is away until it has come to its parent.
    int arrive(NodeInfo info, int64_t now);
    // Those above it that are there or coming, nearest first; empty: it shall stay below the root.
    std::vector<wire::Hop> way(int node) const;
    // The first has come, or come back, with the others below it. False: nobody knows it.
    bool attached(int parent, const std::vector<wire::Station>& stations);
    // The connection to the first has ended: all of them are away.
    void left(const std::vector<wire::Station>& stations, bool silent, int64_t now);
    // Those that have been away for too long are lost from now on.
    std::vector<std::pair<int, NodeInfo>> expire(int64_t now);
    // No patience any more: the job is over.
    void forget(int node) { here_.erase(node); }

    // Also one that is lost: it may come back.
    bool knows(int node) const { return here_.count(node) || lost_.count(node); }
    bool is_here(int node) const;
    // The child of the root above it; kRoot: it is away, or below one that is.
    int below_root(int node) const;
    // ms until the next one is lost, at most `otherwise`.
    int64_t rest(int64_t now, int64_t otherwise) const;
    // All that are there or away.
    const std::map<int, NodeInfo>& all() const { return here_; }
    NodeInfo* find(int node);

  private:
    void away(int node, int64_t until);
    Shape shape_;
    Rhythm rhythm_;
    int next_ = 0;
    std::map<int, NodeInfo> here_, lost_;
};

}  // namespace fermata::tree
