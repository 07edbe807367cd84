#include "keeping/account/account.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>

#include "base/invariant.h"
#include "tree/ranks.h"

namespace fermata::keeping {

using store::LevelName;

std::map<std::string, std::vector<uint32_t>> Account::ranks_by_node() const {
    std::map<std::string, std::vector<uint32_t>> ranks;
    for (uint32_t rank = 0; rank < places.size(); ++rank) ranks[places[rank]].push_back(rank);
    return ranks;
}

std::string Account::address_of(const std::string& node) const {
    auto found = addresses.find(node);
    return found == addresses.end() ? "" : found->second;
}

std::string Account::buddy_of(const std::string& node) const {
    auto found = buddies.all().find(node);
    return found == buddies.all().end() ? "" : found->second;
}

std::vector<wire::Share> Account::shares(Generation generation, const std::set<std::string>& here) const {
    always(static_cast<bool>(generation), "shares of no generation");
    std::map<std::string, tree::Ranks> ranks;
    const auto made_whole =
        generation == whole.generation ? places_if_whole(here) : std::vector<std::string>();
    const std::vector<std::string>& from = made_whole.empty() ? places : made_whole;
    for (size_t rank = 0; rank < from.size(); ++rank) {
        const std::string& place = from[rank];
        ranks[here.count(place) || buddies.all().empty() ? place : buddy_of(place)].add(
            tree::Ranks(static_cast<int32_t>(rank)));
    }
    std::vector<wire::Share> shares;
    for (auto& [host, its] : ranks) shares.push_back({host, its.runs()});
    return shares;
}

std::vector<std::string> Account::places_if_whole(const std::set<std::string>& here) const {
    const bool all = std::all_of(whole.places.begin(), whole.places.end(),
                                 [&](const std::string& host) { return here.count(host) > 0; });
    return all ? whole.places : std::vector<std::string>();
}

// A generation that was made whole again is there, too.
Generation Account::newest_there(const std::set<std::string>& here) const {
    return std::max(places_if_whole(here).empty() ? Generation() : whole.generation, newest_of_nodes(here));
}

// Without some of the nodes only what has buddies is there.
Generation Account::newest_of_nodes(const std::set<std::string>& here) const {
    bool all = true;
    for (const std::string& host : hosts) {
        if (here.count(host)) continue;
        all = false;
        if (!here.count(buddy_of(host))) return {};
    }
    return all ? book.newest_on_nodes() : book.newest_in(level::kBuddies);
}

Generation Account::only_on_nodes(const std::set<std::string>& here) const {
    const Generation there = newest_there(here);
    return there > book.newest_in(LevelName::files) ? there : Generation();
}

Generation Account::only_with_parity(const std::set<std::string>& here) const {
    const Generation with_parity = book.newest_in(level::kParity);
    return with_parity > std::max(newest_there(here), book.newest_in(LevelName::files)) ? with_parity
                                                                                        : Generation();
}

std::string Account::lost_with_nodes(const std::set<std::string>& here) const {
    const Generation on_nodes = book.newest_on_nodes();
    if (on_nodes <= std::max(newest_there(here), book.newest_in(LevelName::files))) return {};
    std::vector<std::string> gone;
    std::set_difference(hosts.begin(), hosts.end(), here.begin(), here.end(), std::back_inserter(gone));
    return fmt::format(
        "{}: a part of it was in {}, whose node daemon is gone: `fermata restart` goes on from there if it "
        "still is",
        on_nodes.name(), words_of(book.medium_of(on_nodes), fmt::format("{}", fmt::join(gone, ", "))));
}

std::string Account::where() const {
    return words_of(book.medium_of(book.newest_on_nodes()), fmt::format("{}", fmt::join(hosts, ", ")));
}

}  // namespace fermata::keeping
