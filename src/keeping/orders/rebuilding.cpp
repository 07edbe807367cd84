#include "keeping/orders/rebuilding.h"

#include <algorithm>
#include <functional>

#include "base/invariant.h"
#include "base/text.h"
#include "erasure/layout.h"
#include "tree/ranks.h"

namespace fermata::keeping {
namespace {

using Answers = Asking::Answers;

// The nodes that say that they have parity of a group; all say the same of it.
struct Known {
    wire::PeerGroup group;
    std::set<std::string> with_parity;
};

std::vector<Known> groups_of(Generation generation, const Answers& answers) {
    std::map<std::array<uint8_t, 16>, Known> all;
    for (auto& [host, answer] : answers)
        for (const wire::PeerGroup& group : answer.parity) {
            if (group.generation != generation) continue;
            Known& known = all[group.name];
            known.group = group;
            known.with_parity.insert(host);
        }
    std::vector<Known> list;
    for (auto& [name, known] : all) list.push_back(std::move(known));
    return list;
}

bool has_all(const tree::Ranks& ranks, const std::vector<wire::Run>& wanted) {
    const auto all = tree::Ranks::of(wanted);
    bool found = all.has_value();
    if (all) all->each([&](int32_t rank) { found = found && ranks.contains(rank); });
    return found;
}

// Enough of the group is left to give back what others of it had.
bool bears(const Known& known, std::map<std::string, tree::Ranks>& intact) {
    const auto layout =
        erasure::Layout::of(static_cast<uint32_t>(known.group.peers.size()), known.group.losses);
    if (!layout) return false;
    std::vector<bool> data, parity;
    for (const wire::Peer& peer : known.group.peers) {
        data.push_back(!has_all(intact[peer.host], peer.ranks));
        parity.push_back(known.with_parity.count(peer.host) == 0);
    }
    return layout->bears(data, parity);
}

bool has_rank(const wire::PeerGroup& group, int32_t rank) {
    return std::any_of(group.peers.begin(), group.peers.end(), [&](const wire::Peer& peer) {
        const auto ranks = tree::Ranks::of(peer.ranks);
        return ranks && ranks->contains(rank);
    });
}

// Adds what one generation lacks of these ranks' images. False: something of it cannot be had.
bool add_repairs(const store::GenerationInfo& info, const std::function<bool(const store::ImageEntry&)>& of,
                 const Answers& answers, const Rebuilding::Places& places, wire::Rebuild& order) {
    always(info.manifest.has_value(), "images of a generation without a manifest");
    const Generation generation(info.number);
    auto intact = Rebuilding::intact_of(info, answers);
    tree::Ranks there;
    for (auto& [host, ranks] : intact) there.add(ranks);
    std::vector<Known> good;
    for (const Known& known : groups_of(generation, answers))
        if (bears(known, intact)) good.push_back(known);
    std::map<std::string, tree::Ranks> wanted;
    for (const store::ImageEntry& entry : info.manifest->images) {
        const auto rank = static_cast<int32_t>(entry.rank.number());
        if (!of(entry) || there.contains(rank)) continue;
        auto place = places.find(rank);
        if (place == places.end() || std::none_of(good.begin(), good.end(), [&](const Known& known) {
                return has_rank(known.group, rank);
            }))
            return false;
        wanted[place->second].add(tree::Ranks(rank));
    }
    for (auto& [host, ranks] : wanted) order.repairs.push_back({host, generation, ranks.runs()});
    if (wanted.empty()) return true;
    for (const Known& known : good) {
        order.groups.push_back(known.group);
        for (wire::Peer& peer : order.groups.back().peers)
            if (auto answer = answers.find(peer.host); answer != answers.end())
                peer.addresses = answer->second.addresses;
    }
    return true;
}

}  // namespace

Rebuilding::Places Rebuilding::places_of(const Answers& answers) {
    Places places;
    for (auto& [host, answer] : answers)
        for (int32_t rank : answer.ranks) places[rank] = host;
    return places;
}

std::map<std::string, tree::Ranks> Rebuilding::intact_of(const store::GenerationInfo& info,
                                                         const Answers& answers) {
    std::map<std::string, tree::Ranks> intact;
    for (auto& [host, answer] : answers)
        for (const wire::Copy& copy : answer.copies) {
            const auto rank = static_cast<size_t>(copy.rank);
            if (copy.generation != Generation(info.number) || rank >= info.manifest->images.size()) continue;
            const store::ImageEntry& entry = info.manifest->images[rank];
            if (entry.bytes == copy.bytes && entry.checksum.bytes == copy.checksum)
                intact[host].add(tree::Ranks(copy.rank));
        }
    return intact;
}

std::optional<wire::Rebuild> Rebuilding::order_for(const store::GenerationInfo& wanted,
                                                   const std::vector<store::GenerationInfo>& all,
                                                   const Answers& answers, const Places& places,
                                                   uint32_t number) {
    if (!wanted.manifest || wanted.manifest->step || wanted.manifest->level == store::LevelName::local ||
        !wanted.is_up_to_nodes())
        return {};
    // An image that is broken in files is taken from memory then, with all images that it refers to.
    const auto of = [&](const store::ImageEntry& entry) {
        return wanted.manifest->on_nodes() || wanted.broken.count(entry.rank.number()) > 0;
    };
    wire::Rebuild order{number, {}, {}};
    std::set<uint32_t> numbers(wanted.manifest->needs.begin(), wanted.manifest->needs.end());
    numbers.insert(wanted.number);
    for (uint32_t one : numbers) {
        auto info =
            std::find_if(all.begin(), all.end(), [&](const auto& each) { return each.number == one; });
        // One that is in files, too, has the same images there and in memory.
        if (info == all.end() || !info->manifest || !add_repairs(*info, of, answers, places, order))
            return {};
    }
    if (order.repairs.empty()) return {};
    return order;
}

Rebuilding::Rebuilding(wire::Rebuild order) : order_(std::move(order)) {
    always(order_.number > 0 && !order_.repairs.empty(), "an order to rebuild nothing");
    for (const wire::Repair& repair : order_.repairs) waiting_.insert(repair.host);
}

bool Rebuilding::heard(const wire::Rebuilt& answer) {
    if (answer.number != order_.number) return false;
    if (waiting_.erase(answer.host) == 0) return true;  // said again
    done_.insert(done_.end(), answer.done.begin(), answer.done.end());
    if (answer.error.empty()) return true;
    unable_.insert(answer.host);
    if (error_.empty()) error_ = fmt::format("{}: {}", answer.host, answer.error);
    return true;
}

void Rebuilding::only(const std::set<std::string>& hosts) {
    for (auto one = waiting_.begin(); one != waiting_.end();) {
        if (hosts.count(*one)) {
            ++one;
            continue;
        }
        if (error_.empty()) error_ = fmt::format("the node daemon of {} is gone", *one);
        unable_.insert(*one);
        one = waiting_.erase(one);
    }
}

std::string Rebuilding::rebuilt() const {
    std::map<Generation, tree::Ranks> all;
    for (const wire::Repair& repair : done_)
        if (auto ranks = tree::Ranks::of(repair.ranks)) all[repair.generation].add(*ranks);
    std::string line;
    for (auto& [generation, ranks] : all)
        line += fmt::format("{}{}: rebuilt from parity: the image{} of rank{} {}", line.empty() ? "" : "; ",
                            generation.name(), ranks.count() > 1 ? "s" : "", ranks.count() > 1 ? "s" : "",
                            ranks.text(200));
    return line;
}

}  // namespace fermata::keeping
