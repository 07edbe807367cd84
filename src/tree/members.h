// Members are the daemons of a job as the root knows them: which have answered the newest call of the roll,
// which may still do so, which are lost. No I/O; times are given.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tree/pulse.h"
#include "tree/shape.h"
#include "wire/message.h"

namespace fermata::tree {

struct NodeInfo {
    std::string host;
    int pid = 0;
    uint32_t ranks = 0;
    std::string addresses;      // where other daemons reach it
    int64_t away_until = 0;     // ms: it has not answered, and is lost then; 0 = it is here
    bool coming = false;        // away because it has not come to its first parent yet
    bool left = false;          // away, and its connection is known to have ended
    int64_t left_since = 0;     // ms
    bool silent = false;        // likewise, and not by the daemon or its kernel: it may live
    bool with_another = false;  // lost because one above it is
};

class Members {
  public:
    Members(size_t radix, Rhythm rhythm) : shape_(radix), rhythm_(rhythm) {}

    void stay_flat() { shape_ = Shape(1'000'000'000); }
    // Its number; the same as before when it says so twice.
    int arrive(NodeInfo info, int64_t now);
    // Lists the daemons above it that are there or coming, nearest first; empty: it shall stay below the
    // root.
    std::vector<wire::Hop> way(int node) const;
    // Those that were sent below it, at whatever depth.
    std::vector<int> below(int node) const;

    // The roll is called: everybody is away until it answers.
    void call(int64_t now);
    // It answers, or comes back after it was lost. False: nobody knows it.
    bool here(int node);
    // Its connection has ended, and it has not answered since.
    void left(int node, bool silent, int64_t now);
    // The job is over: whose connection has ended is lost.
    void expect_no_return(int64_t now);
    // Takes out those that have been away for too long: they are lost from now on.
    std::vector<std::pair<int, NodeInfo>> expire(int64_t now);
    // No patience any more: the job is over.
    void forget(int node);

    // True also for one that is lost: it may come back.
    bool knows(int node) const { return here_.count(node) || lost_.count(node); }
    // All that are known are here.
    bool whole() const { return away_ == 0; }
    // ms until the next one is lost, at most `otherwise`.
    int64_t rest(int64_t now, int64_t otherwise) const;
    // All that are here or away.
    const std::map<int, NodeInfo>& all() const { return here_; }
    NodeInfo* find(int node);

  private:
    void set_away(NodeInfo& info, int64_t until);
    Shape shape_;
    const Rhythm rhythm_;
    int next_ = 0;
    std::map<int, NodeInfo> here_, lost_;
    std::map<std::string, int> by_addresses_;
    size_t away_ = 0;  // of here_
};

}  // namespace fermata::tree
