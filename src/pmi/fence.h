// A Fence is a barrier of ranks that carries data: parts of nodes go up and are merged, the result goes down
// to all nodes. FenceMerge is what the root (and every daemon with daemons below) does with parts.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "pmi/placement.h"

namespace fermata::pmi {

struct FenceName {
    uint32_t epoch = 0;
    std::vector<RankRange> among;  // ranks that take part; empty = the whole world
    uint32_t number = 0;           // of the fences among these ranks, from 0
    auto operator<=>(const FenceName&) const = default;
};

// A part of one node, of several, or (when it is whole) the result.
struct Fence {
    FenceName name;
    uint32_t ranks = 0;  // whose data is in it
    uint32_t of = 0;     // ranks that take part
    std::string data;    // parts of the nodes, one after the other
    std::string fault;   // one line; not empty: the fence has failed, for all
    bool whole() const { return !fault.empty() || (of > 0 && ranks == of); }
};

// Parts in, what goes on out: at the root the result (to be sent to all nodes), at a relay the merged part
// (to be sent up). At the root every fence has one result, whatever comes afterwards.
class FenceMerge {
  public:
    enum class Level { relay, root };
    // `ranks`: of the world at the root, below this relay else.
    FenceMerge(Level level, uint32_t epoch, uint32_t ranks) : level_(level), epoch_(epoch), ranks_(ranks) {}

    // Nothing = more parts are due, or the result is out. A fault, so that nobody waits, is the result for a
    // part of another epoch, one that cannot be, and one of a fence among ranks of which one has died.
    std::optional<Fence> add(Fence part);
    // At the root: a rank has ended, however (its daemon, too). The results (faults) of the fences that wait
    // for it; later fences fail in add().
    std::vector<Fence> lost(Rank rank, const std::string& why);

  private:
    using Sequence = std::pair<uint32_t, std::vector<RankRange>>;  // epoch, participants

    std::optional<Fence> add_at_relay(Fence part);
    std::string fault_of(const Fence& part) const;
    std::string dead_among(const std::vector<RankRange>& among) const;
    Fence failed(const Fence& fence, const std::string& why);

    Level level_;
    uint32_t epoch_;
    uint32_t ranks_;
    std::map<FenceName, Fence> open_;
    std::map<Sequence, uint32_t> next_;  // number of the fence without a result
    std::map<Rank, std::string> dead_;   // why
};

}  // namespace fermata::pmi
