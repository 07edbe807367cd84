#include "tree/members.h"

#include <algorithm>

#include "base/invariant.h"

namespace fermata::tree {
namespace {

constexpr int64_t kBackMs = 1000;  // for a new connection, once the old one is known to have ended
constexpr int64_t kAnswerMs =
    10000;  // to a call of the roll, beside the time until a silent parent is noticed
constexpr int64_t kFirstMs = 30000;  // from NodeHello to the parent

}  // namespace

int Members::arrive(NodeInfo info, int64_t now) {
    auto known = by_addresses_.find(info.addresses);
    if (known != by_addresses_.end() && here_.count(known->second)) return known->second;
    int node = next_++;
    if (!info.addresses.empty()) by_addresses_[info.addresses] = node;
    NodeInfo& one = here_[node] = std::move(info);
    one.away_until = 0;
    set_away(one, now + kFirstMs);
    one.coming = true;
    return node;
}

std::vector<wire::Hop> Members::way(int node) const {
    std::vector<wire::Hop> hops;
    for (int at : shape_.ancestors(node)) {
        auto found = here_.find(at);
        if (found != here_.end() && !found->second.left && !found->second.addresses.empty())
            hops.push_back({at, found->second.addresses});
    }
    return hops;
}

std::vector<int> Members::below(int node) const {
    std::vector<int> all;
    for (auto& [other, info] : here_) {
        const std::vector<int> above = shape_.ancestors(other);
        if (std::find(above.begin(), above.end(), node) != above.end()) all.push_back(other);
    }
    return all;
}

void Members::set_away(NodeInfo& info, int64_t until) {
    always(until != 0, "a daemon that is away for no time");
    if (info.away_until == 0) ++away_;
    info.away_until = until;
}

void Members::call(int64_t now) {
    for (auto& [node, info] : here_)
        if (info.away_until == 0) set_away(info, now + kAnswerMs + rhythm_.silent_ms);
}

bool Members::here(int node) {
    auto found = here_.find(node);
    if (found == here_.end()) {
        auto lost = lost_.find(node);
        if (lost == lost_.end()) return false;
        found = here_.insert(lost_.extract(lost)).position;
        ++away_;
    }
    NodeInfo& info = found->second;
    always(info.away_until == 0 || away_ > 0, "more daemons that are back than were away");
    if (info.away_until != 0) --away_;
    info.away_until = 0;
    info.coming = info.left = info.silent = false;
    return true;
}

void Members::left(int node, bool silent, int64_t now) {
    NodeInfo* info = find(node);
    if (!info) return;
    set_away(*info, now + kBackMs);
    info->left = true;
    info->left_since = now;
    info->silent = silent;
}

void Members::expect_no_return(int64_t now) {
    for (auto& [node, info] : here_)
        if (info.left) info.away_until = std::min(info.away_until, now);
}

std::vector<std::pair<int, NodeInfo>> Members::expire(int64_t now) {
    std::vector<std::pair<int, NodeInfo>> gone;
    if (away_ == 0) return gone;
    for (auto one = here_.begin(); one != here_.end();) {
        auto next = std::next(one);
        if (one->second.away_until != 0 && one->second.away_until <= now) {
            gone.push_back(*one);
            always(away_ > 0, "more daemons that are lost than were away");
            lost_.insert(here_.extract(one));
            --away_;
        }
        one = next;
    }
    return gone;
}

void Members::forget(int node) {
    auto found = here_.find(node);
    if (found == here_.end()) return;
    if (found->second.away_until != 0) --away_;
    here_.erase(found);
}

int64_t Members::rest(int64_t now, int64_t otherwise) const {
    if (away_ == 0) return otherwise;
    for (auto& [node, info] : here_)
        if (info.away_until != 0) otherwise = std::clamp<int64_t>(info.away_until - now, 0, otherwise);
    return otherwise;
}

NodeInfo* Members::find(int node) {
    auto found = here_.find(node);
    return found == here_.end() ? nullptr : &found->second;
}

}  // namespace fermata::tree
