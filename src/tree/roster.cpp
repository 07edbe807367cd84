#include "tree/roster.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/invariant.h"

namespace fermata::tree {
namespace {

// Both sets with their pids in one.
void merge(Roster::Place& place, const Ranks& ranks, const std::vector<int32_t>& pids) {
    always(place.pids.size() == place.ranks.count() && pids.size() == ranks.count(),
           "ranks of a node without a process for each");
    Ranks all = place.ranks;
    all.add(ranks);
    std::vector<int32_t> merged;
    merged.reserve(all.count());
    size_t old = 0, fresh = 0;
    all.each([&](int32_t rank) {
        bool is_new = ranks.contains(rank);
        if (place.ranks.contains(rank)) {
            if (!is_new) merged.push_back(place.pids[old]);
            ++old;
        }
        if (is_new) merged.push_back(pids[fresh++]);
    });
    place.ranks = std::move(all);
    place.pids = std::move(merged);
}

}  // namespace

std::string Roster::join(int node, const wire::Group& group) {
    int32_t size = size_ ? size_ : group.size;
    auto ranks = Ranks::of(group.ranks);
    auto misfit = [&](int32_t rank) {
        return fmt::format(
            "rank {} of {} on {} does not fit a job of {} ranks: does the program match this mpiexec?", rank,
            group.size, group.host, size_ ? std::to_string(size_) : fmt::format("1 to {}", kMostRanks));
    };
    if (!ranks || ranks->empty() || group.pids.size() != ranks->count())
        return misfit(group.ranks.empty() ? -1 : group.ranks[0].first);
    if (group.size != size || size < 1 || size > kMostRanks) return misfit(ranks->first());
    if (ranks->last() >= size) return misfit(ranks->last());
    if (auto twice = here_.common(*ranks)) return misfit(*twice);
    size_ = size;
    here_.add(*ranks);
    merge(places_[node], *ranks, group.pids);
    return {};
}

Ranks Roster::leave(int node, const Ranks& ranks) {
    auto found = places_.find(node);
    if (found == places_.end()) return {};
    Place& place = found->second;
    Ranks left = place.ranks, gone = place.ranks;
    left.take_away(ranks);
    gone.take_away(left);
    std::vector<int32_t> pids;
    size_t at = 0;
    place.ranks.each([&](int32_t rank) {
        if (left.contains(rank)) pids.push_back(place.pids[at]);
        ++at;
    });
    always(pids.size() == left.count(), "ranks of a node without a process for each");
    here_.take_away(gone);
    if (left.empty())
        places_.erase(found);
    else
        place = {std::move(left), std::move(pids)};
    return gone;
}

size_t Roster::lose(int node) {
    auto found = places_.find(node);
    if (found == places_.end()) return 0;
    size_t count = found->second.ranks.count();
    here_.take_away(found->second.ranks);
    places_.erase(found);
    return count;
}

int Roster::at(int node) const {
    auto found = places_.find(node);
    return found == places_.end() ? 0 : static_cast<int>(found->second.ranks.count());
}

int Roster::node_of(int32_t rank) const {
    for (auto& [node, place] : places_)
        if (place.ranks.contains(rank)) return node;
    return -1;
}

Ranks Roster::ranks_at(int node) const {
    auto found = places_.find(node);
    return found == places_.end() ? Ranks() : found->second.ranks;
}

std::string Roster::missing(size_t most) const {
    Ranks all;
    if (size_ > 0) all = *Ranks::of({{0, static_cast<uint32_t>(size_)}});
    all.take_away(here_);
    return all.text(most);
}

void Roster::moved(int32_t rank, int32_t pid) {
    for (auto& [node, place] : places_)
        if (place.ranks.contains(rank)) place.pids.at(place.ranks.place_of(rank)) = pid;
}

}  // namespace fermata::tree
