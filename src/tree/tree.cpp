#include "tree/tree.h"

#include <algorithm>
#include <cstdlib>

#include "base/log.h"
#include "tree/root_address.h"
#include "tree/tally.h"

namespace fermata::tree {
namespace {

// What a node may say at once, of itself and of each rank of the job.
constexpr uint32_t kNodePayload = 1u << 20, kRankPayload = 16384;

int64_t number_from(const char* name, int64_t otherwise) {
    const char* text = std::getenv(name);
    int64_t value = text ? std::strtoll(text, nullptr, 10) : 0;
    return value > 0 ? value : otherwise;
}

}  // namespace

Manners Manners::from_environment() {
    Manners manners;
    manners.radix = static_cast<size_t>(number_from("FERMATA_TREE_RADIX", 64));
    manners.rhythm.silent_ms = number_from("FERMATA_TREE_SILENT", manners.rhythm.silent_ms);
    manners.rhythm.beat_ms = std::max<int64_t>(1, manners.rhythm.silent_ms / 6);
    return manners;
}

Tree::Tree(const wire::Key& key, Manners manners)
    : manners_(manners), links_(key), members_(manners.radix, manners.rhythm) {
    links_.set_rhythm(manners.rhythm);
    links_.on_message = [this](int link, const wire::Message& message) { from(link, message); };
    links_.on_closed = [this](int link, Links::End how) { closed(link, how); };
}

void Tree::serve(const std::vector<pollfd>& fds, size_t first) {
    links_.serve(fds, first);
    for (auto& [node, info] : members_.expire(now_ms())) on_lost(node, info);
}

int Tree::rest(int otherwise) const {
    return static_cast<int>(members_.rest(now_ms(), links_.rest(otherwise)));
}

void Tree::from(int link, const wire::Message& message) {
    if (auto child = child_of_.find(link); child != child_of_.end())
        from_child(child->second, message);
    else
        from_stranger(link, message);
}

void Tree::from_stranger(int link, const wire::Message& message) {
    if (auto* hello = std::get_if<wire::NodeHello>(&message)) {
        register_node(link, *hello);
    } else if (std::get_if<wire::Spare>(&message)) {
        harmless_.insert(link);
    } else if (auto* attach = std::get_if<wire::Attach>(&message)) {
        harmless_.insert(link);
        if (attach->stations.empty() || !members_.knows(attach->stations[0].node) ||
            ways_.overtaken(attach->stations[0]))
            return links_.close(link);
        const int child = attach->stations[0].node;
        if (auto old = link_of_.find(child); old != link_of_.end()) {
            int before = old->second;
            closed(before, Links::End::closed);
            links_.close(before);
        }
        child_of_[link] = child;
        link_of_[child] = link;
        links_.allow(link, kNodePayload);
        came(child, kRoot, attach->stations);
        for (const wire::Order& order : orders_.since(attach->heard)) links_.send(link, order);
    }
}

void Tree::register_node(int link, const wire::NodeHello& hello) {
    NodeInfo info;
    info.host = hello.host;
    info.pid = hello.pid;
    info.addresses = hello.addresses;
    int node = members_.arrive(std::move(info), now_ms());
    wire::Parent parent{node, orders_.newest(), members_.way(node),
                        static_cast<uint32_t>(manners_.rhythm.beat_ms),
                        static_cast<uint32_t>(manners_.rhythm.silent_ms)};
    if (parent.way.empty()) {
        child_of_[link] = node;
        link_of_[node] = link;
        links_.allow(link, kNodePayload);
        heed(ways_.came(node, {{node, 0}}));
    } else {
        harmless_.insert(link);
    }
    links_.send(link, parent);
}

void Tree::from_child(int child, const wire::Message& message) {
    if (auto* m = std::get_if<wire::Attached>(&message)) {
        came(child, m->parent, m->stations);
    } else if (auto* m = std::get_if<wire::Left>(&message)) {
        Ways::News news = ways_.left(child, m->stations);
        heed(news);
        if (!news.old) went(m->stations, m->silent);
    } else if (!Tally::replaces(message) || ways_.believed(child)) {
        on_message(child, message);
    }
}

void Tree::heed(const Ways::News& news) {
    for (int child : news.not_believed) on_anew(child);
}

void Tree::came(int child, int parent, const Ways::Stations& stations) {
    Ways::News news = ways_.came(child, stations);
    heed(news);
    if (news.old || stations.empty()) return;
    const int node = stations[0].node;
    const NodeInfo* known = members_.find(node);
    bool first = known && known->coming;
    if (members_.attached(parent, stations) && !first) on_back(node, *members_.find(node));
}

void Tree::went(const Ways::Stations& stations, bool silent) {
    const NodeInfo* known = stations.empty() ? nullptr : members_.find(stations[0].node);
    if (!known) return;
    NodeInfo info = *known;
    info.silent = silent;
    members_.left(stations, silent, now_ms());
    on_left(stations[0].node, info);
    if (patient_) return;
    members_.forget(stations[0].node);
    on_lost(stations[0].node, info);
}

void Tree::closed(int link, Links::End how) {
    auto found = child_of_.find(link);
    if (found == child_of_.end()) {
        if (harmless_.erase(link) == 0) on_lost(-1, {});
        return;
    }
    int child = found->second;
    harmless_.erase(link);
    child_of_.erase(found);
    link_of_.erase(child);
    on_anew(child);
    went(ways_.gone(child), how == Links::End::silent);
}

void Tree::expect(int node, uint32_t ranks, uint32_t all) {
    if (NodeInfo* info = members_.find(node)) info->ranks = ranks;
    allow(node, all);
}

void Tree::allow(int node, uint32_t ranks) {
    auto link = link_of_.find(ways_.to(node));
    uint64_t room = kNodePayload + uint64_t{ranks} * kRankPayload;
    if (link != link_of_.end())
        links_.allow(link->second, static_cast<uint32_t>(std::min<uint64_t>(room, wire::kMaxPayload)));
}

void Tree::broadcast(const wire::Message& message) {
    wire::Order order{++next_order_, wire::encode(message)};
    orders_.add(order);
    to_children(order);
}

void Tree::to_children(const wire::Message& message) {
    for (auto& [child, link] : link_of_) links_.send(link, message);
}

void Tree::send(int node, const wire::Message& message) {
    auto link = link_of_.find(ways_.to(node));
    if (link == link_of_.end()) return;
    if (link->first == node)
        links_.send(link->second, message);
    else
        links_.send(link->second, wire::To{node, wire::encode(message)});
}

}  // namespace fermata::tree
