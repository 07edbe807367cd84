#include "tree/roll_call.h"

#include "base/invariant.h"
#include "tree/tally.h"

namespace fermata::tree {

void RollCall::begin(uint32_t number) {
    always(number > number_, "a call of the roll with the number of an earlier one");
    number_ = number;
    ways_.clear();
    ranks_ = 0;
    for (auto& [node, child] : children_) {
        child.here = false;
        child.ranks = {};
    }
}

void RollCall::came(int child, uint32_t answered) {
    left(child);
    children_[child] = {answered, false, {}};
}

void RollCall::left(int child) {
    auto found = children_.find(child);
    if (found == children_.end()) return;
    always(ranks_ >= found->second.ranks.count(), "more ranks that leave than are there");
    ranks_ -= found->second.ranks.count();
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
    add_ranks(child, answer.groups);
    return true;
}

bool RollCall::is_here(int child) const {
    auto found = children_.find(child);
    return found != children_.end() && found->second.here;
}

void RollCall::add_ranks(int child, const std::vector<wire::Group>& groups) {
    auto found = children_.find(child);
    if (found == children_.end()) return;
    Ranks& below = found->second.ranks;
    const uint32_t before = below.count();
    for (const wire::Group& group : groups)
        if (auto ranks = Ranks::of(group.ranks)) below.add(*ranks);
    ranks_ += below.count() - before;
}

void RollCall::take_ranks(int child, const Ranks& ranks) {
    auto found = children_.find(child);
    if (found == children_.end()) return;
    Ranks& below = found->second.ranks;
    const uint32_t before = below.count();
    below.take_away(ranks);
    always(before >= below.count() && ranks_ >= before - below.count(),
           "more ranks that leave than are there");
    ranks_ -= before - below.count();
}

int RollCall::way_to(int node) const {
    auto way = ways_.find(node);
    return way == ways_.end() ? -1 : way->second;
}

std::map<int, uint32_t> RollCall::children() const {
    std::map<int, uint32_t> all;
    for (auto& [node, child] : children_) all[node] = child.ranks.count();
    return all;
}

bool is_said_again(const wire::Message& message) {
    auto is = [&]<class... Types>() { return (std::holds_alternative<Types>(message) || ...); };
    return Tally::replaces(message) ||
           is.template operator()<wire::Joined, wire::Gone, wire::InStarter, wire::Room, wire::Flushed,
                                  wire::Copies, wire::Fetched, wire::Encoded, wire::Rebuilt>();
}

}  // namespace fermata::tree
