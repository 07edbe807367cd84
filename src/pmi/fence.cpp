#include "pmi/fence.h"

#include <fmt/core.h>

#include "base/invariant.h"

namespace fermata::pmi {

std::optional<Fence> FenceMerge::add(Fence part) {
    if (level_ == Level::relay) return add_at_relay(std::move(part));
    auto next = next_.find({part.name.epoch, part.name.among});
    if (next != next_.end() && part.name.number < next->second) return std::nullopt;
    if (std::string fault = fault_of(part); !fault.empty()) return failed(part, fault);
    Fence& fence = open_.try_emplace(part.name, Fence{part.name, 0, part.of, {}, {}}).first->second;
    if (part.of != fence.of || part.ranks > fence.of - fence.ranks)
        return failed(part, fmt::format("fence {} counts more ranks than take part", part.name.number));
    fence.ranks += part.ranks;
    fence.data += part.data;
    if (!fence.whole()) return std::nullopt;
    always(fence.ranks == fence.of && fence.fault.empty(), "a fence that is whole and lacks ranks");
    Fence result = std::move(fence);
    open_.erase(result.name);
    next_[{result.name.epoch, result.name.among}] = result.name.number + 1;
    return result;
}

// A relay cannot know who of its ranks takes part in a fence among some; parts of those go on as they are.
std::optional<Fence> FenceMerge::add_at_relay(Fence part) {
    if (!part.fault.empty() || !part.name.among.empty() || part.name.epoch != epoch_) return part;
    Fence& fence = open_.try_emplace(part.name, Fence{part.name, 0, part.of, {}, {}}).first->second;
    fence.ranks += part.ranks;
    fence.data += part.data;
    if (fence.ranks < ranks_) return std::nullopt;
    always(level_ == Level::relay, "a root that hands a fence up");
    Fence merged = std::move(fence);
    open_.erase(merged.name);
    return merged;
}

std::vector<Fence> FenceMerge::lost(Rank rank, const std::string& why) {
    dead_.try_emplace(rank, why);
    std::vector<Fence> waiting, results;
    for (const auto& [name, fence] : open_) waiting.push_back(fence);
    for (const Fence& fence : waiting)
        if (std::string dead = dead_among(fence.name.among); !dead.empty())
            results.push_back(failed(fence, dead));
    return results;
}

std::string FenceMerge::fault_of(const Fence& part) const {
    if (!part.fault.empty()) return part.fault;
    if (part.name.epoch != epoch_)
        return fmt::format("a fence of epoch {}, this is epoch {}", part.name.epoch, epoch_);
    uint64_t among = 0;
    for (const RankRange& range : part.name.among) among += range.count();
    if (part.name.among.empty()) among = ranks_;
    if (part.of == 0 || part.of != among || part.ranks == 0)
        return fmt::format("fence {}: {} of {} ranks, expected are {}", part.name.number, part.ranks, part.of,
                           among);
    auto next = next_.find({part.name.epoch, part.name.among});
    if (part.name.number != (next == next_.end() ? 0 : next->second))
        return fmt::format("fence {} before the one it follows", part.name.number);
    return dead_among(part.name.among);
}

std::string FenceMerge::dead_among(const std::vector<RankRange>& among) const {
    for (const auto& [rank, why] : dead_) {
        bool member = among.empty();
        for (const RankRange& range : among) member = member || range.holds(rank);
        if (member) return fmt::format("rank {} {}", rank.number(), why);
    }
    return {};
}

Fence FenceMerge::failed(const Fence& fence, const std::string& why) {
    always(!why.empty(), "a fence that has failed without a reason");
    Fence result{fence.name, 0, fence.of, {}, why};
    open_.erase(result.name);
    // A number that cannot be has its own fault, and the fence that is due stays open.
    uint32_t& next = next_[{result.name.epoch, result.name.among}];
    if (result.name.epoch != epoch_ || result.name.number == next) next = result.name.number + 1;
    return result;
}

}  // namespace fermata::pmi
