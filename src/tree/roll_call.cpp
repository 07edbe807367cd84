#include "tree/roll_call.h"

#include <algorithm>

#include "tree/tally.h"

namespace fermata::tree {

void RollCall::begin(uint32_t number) {
    number_ = number;
    ways_.clear();
    ranks_ = 0;
    for (auto& [node, child] : children_) {
        child.here = false;
        child.ranks = 0;
    }
}

void RollCall::came(int child, uint32_t answered) {
    left(child);
    children_[child] = {answered};
}

void RollCall::left(int child) {
    auto found = children_.find(child);
    if (found == children_.end()) return;
    ranks_ -= found->second.ranks;
    children_.erase(found);
    std::erase_if(ways_, [child](const auto& way) { return way.second == child; });
}

bool RollCall::call(int child) {
    auto found = children_.find(child);
    if (found == children_.end() || found->second.answered >= number_) return false;
    found->second.answered = number_;
    return true;
}

bool RollCall::here(int child, const wire::Here& answer) {
    auto found = children_.find(child);
    if (found == children_.end() || answer.roll != number_) return false;
    found->second.here = true;
    for (int node : answer.nodes) ways_[node] = child;
    add_ranks(child, ranks_of(answer.groups));
    return true;
}

bool RollCall::is_here(int child) const {
    auto found = children_.find(child);
    return found != children_.end() && found->second.here;
}

void RollCall::add_ranks(int child, uint32_t ranks) {
    auto found = children_.find(child);
    if (found == children_.end()) return;
    found->second.ranks += ranks;
    ranks_ += ranks;
}

void RollCall::take_ranks(int child, uint32_t ranks) {
    auto found = children_.find(child);
    if (found == children_.end()) return;
    ranks = std::min(ranks, found->second.ranks);
    found->second.ranks -= ranks;
    ranks_ -= ranks;
}

int RollCall::way_to(int node) const {
    auto way = ways_.find(node);
    return way == ways_.end() ? -1 : way->second;
}

std::map<int, uint32_t> RollCall::children() const {
    std::map<int, uint32_t> all;
    for (auto& [node, child] : children_) all[node] = child.ranks;
    return all;
}

bool is_said_again(const wire::Message& message) {
    auto is = [&]<class... Types>() { return (std::holds_alternative<Types>(message) || ...); };
    return Tally::replaces(message) ||
           is.template operator()<wire::Joined, wire::Gone, wire::InStarter, wire::Room, wire::Flushed,
                                  wire::Copies, wire::Fetched, wire::Encoded, wire::Rebuilt>();
}

uint32_t ranks_of(const std::vector<wire::Group>& groups) {
    uint32_t count = 0;
    for (const wire::Group& group : groups) count += static_cast<uint32_t>(group.pids.size());
    return count;
}

}  // namespace fermata::tree
