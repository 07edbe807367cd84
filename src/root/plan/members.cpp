#include "root/plan/members.h"

#include <utility>

namespace fermata::root {

tree::Ranks Members::want(const tree::Ranks& ranks) {
    tree::Ranks end = had();
    end.take_away(ranks);
    wanted_ = ranks;
    return end;
}

tree::Ranks Members::had() const {
    tree::Ranks all;
    for (auto& [rank, copy] : copies_) all.add(tree::Ranks(rank));
    return all;
}

tree::Ranks Members::lacking() const {
    tree::Ranks all = wanted_;
    all.take_away(had());
    return all;
}

const Members::Copy* Members::copy_of(int32_t rank) const {
    auto at = copies_.find(rank);
    return at == copies_.end() ? nullptr : &at->second;
}

tree::Ranks Members::copies_on(int node) const {
    tree::Ranks ranks;
    for (auto& [rank, copy] : copies_)
        if (copy.node == node) ranks.add(tree::Ranks(rank));
    return ranks;
}

std::string Members::why_none(int32_t rank) const {
    auto at = why_none_.find(rank);
    return at == why_none_.end() ? "" : at->second;
}

bool Members::is_refused(int32_t rank) const {
    auto why = why_none_.find(rank), said = said_.find(rank);
    return why != why_none_.end() && said != said_.end() && why->second == said->second;
}

bool Members::made(int32_t rank, Copy copy) {
    copies_[rank] = std::move(copy);
    why_none_.erase(rank);
    return wanted_.contains(rank);
}

bool Members::ended(int32_t rank, int32_t pid, const std::string& why) {
    auto at = copies_.find(rank);
    if (at == copies_.end() || at->second.pid != pid) return false;
    copies_.erase(at);
    why_none_[rank] = why;
    ++epoch_;
    return true;
}

bool Members::refused(int32_t rank, const std::string& why) {
    why_none_[rank] = why;
    return std::exchange(said_[rank], why) != why;
}

void Members::promoted(int32_t rank) {
    copies_.erase(rank);
    why_none_.erase(rank);
    ++epoch_;
}

}  // namespace fermata::root
