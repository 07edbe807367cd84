#include "tree/members.h"

#include <algorithm>

namespace fermata::tree {
namespace {

constexpr int64_t kBackMs = 3000;     // for a new connection, once one has ended
constexpr int64_t kOrphanMs = 15000;  // likewise, beside the time until a silent parent is noticed
constexpr int64_t kFirstMs = 30000;   // from NodeHello to the parent

}  // namespace

int Members::arrive(NodeInfo info, int64_t now) {
    int node = next_++;
    here_[node] = std::move(info);
    if (!way(node).empty()) {
        away(node, now + kFirstMs);
        here_[node].coming = true;
    }
    return node;
}

std::vector<wire::Hop> Members::way(int node) const {
    std::vector<wire::Hop> hops;
    for (int at : shape_.ancestors(node)) {
        auto found = here_.find(at);
        if (found == here_.end() || found->second.addresses.empty()) continue;
        if (is_here(at) || found->second.coming) hops.push_back({at, found->second.addresses});
    }
    return hops;
}

bool Members::attached(int parent, const std::vector<wire::Station>& stations) {
    if (stations.empty()) return false;
    const int node = stations[0].node;
    auto found = here_.find(node);
    if (found == here_.end()) {
        auto lost = lost_.find(node);
        if (lost == lost_.end()) return false;
        found = here_.insert(lost_.extract(lost)).position;
    }
    found->second.parent = parent;
    found->second.away_until = 0;
    found->second.silent = found->second.coming = false;
    for (auto& [number, turn] : stations) {
        auto one = here_.find(number);
        if (one == here_.end() || one->second.away_until == 0) continue;
        one->second.away_until = 0;
        one->second.coming = false;
        if (below_root(number) == kRoot) one->second.parent = node;
    }
    return true;
}

void Members::left(const std::vector<wire::Station>& stations, bool silent, int64_t now) {
    for (size_t i = 0; i < stations.size(); ++i) {
        // Those below need not know of it before they miss it.
        away(stations[i].node, now + (i == 0 ? kBackMs : kOrphanMs + rhythm_.silent_ms));
        if (i == 0 && find(stations[i].node)) find(stations[i].node)->silent = silent;
    }
}

void Members::away(int node, int64_t until) {
    auto found = here_.find(node);
    if (found != here_.end()) found->second.away_until = until;
}

std::vector<std::pair<int, NodeInfo>> Members::expire(int64_t now) {
    std::vector<std::pair<int, NodeInfo>> gone;
    for (auto one = here_.begin(); one != here_.end();) {
        auto next = std::next(one);
        if (one->second.away_until != 0 && one->second.away_until <= now) {
            gone.push_back(*one);
            lost_.insert(here_.extract(one));
        }
        one = next;
    }
    return gone;
}

bool Members::is_here(int node) const { return below_root(node) != kRoot; }

int Members::below_root(int node) const {
    for (;;) {
        auto found = here_.find(node);
        if (found == here_.end() || found->second.away_until != 0) return kRoot;
        if (found->second.parent == kRoot) return node;
        node = found->second.parent;
    }
}

int64_t Members::rest(int64_t now, int64_t otherwise) const {
    for (auto& [node, info] : here_)
        if (info.away_until != 0) otherwise = std::clamp<int64_t>(info.away_until - now, 0, otherwise);
    return otherwise;
}

NodeInfo* Members::find(int node) {
    auto found = here_.find(node);
    return found == here_.end() ? nullptr : &found->second;
}

}  // namespace fermata::tree
