#include "tree/tree.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>

#include "base/invariant.h"
#include "base/log.h"
#include "tree/root_address.h"
#include "tree/tally.h"

namespace fermata::tree {
namespace {

// Bytes that a node may say at once, of itself and of each rank of the job.
constexpr uint32_t kNodePayload = 1u << 20, kRankPayload = 1u << 20;

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
    calls_.begin(1);
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
    if (auto* hello = std::get_if<wire::NodeHello>(&message))
        register_node(link, *hello);
    else if (std::get_if<wire::Spare>(&message))
        harmless_.insert(link);
    else if (auto* attach = std::get_if<wire::Attach>(&message))
        this->attach(link, *attach);
}

void Tree::register_node(int link, const wire::NodeHello& hello) {
    NodeInfo info;
    info.host = hello.host;
    info.pid = hello.pid;
    info.addresses = hello.addresses;
    const int node = members_.arrive(std::move(info), now_ms());
    wire::Parent parent{node, orders_.newest(), members_.way(node),
                        static_cast<uint32_t>(manners_.rhythm.beat_ms),
                        static_cast<uint32_t>(manners_.rhythm.silent_ms)};
    links_.send(link, parent);
    if (parent.way.empty())
        add_child(link, node, 0);
    else
        harmless_.insert(link);
}

void Tree::attach(int link, const wire::Attach& attach) {
    if (!members_.knows(attach.node)) return links_.close(link);
    // One that has not found its parent may come: it has said nothing yet.
    const NodeInfo* known = members_.find(attach.node);
    if (!returns_ && !(known && known->coming)) return links_.close(link);
    harmless_.insert(link);
    for (const wire::Order& order : orders_.since(attach.heard)) links_.send(link, order);
    add_child(link, attach.node, attach.answered);
}

void Tree::add_child(int link, int child, uint32_t answered) {
    if (auto old = link_of_.find(child); old != link_of_.end()) {
        const int before = old->second;
        links_.close(before);
        child_of_.erase(before);
        harmless_.erase(before);
    }
    always(child_of_.count(link) == 0, "a connection of two daemons");
    child_of_[link] = child;
    link_of_[child] = link;
    links_.allow(link, kNodePayload);
    const bool came_back = calls_.has(child);
    calls_.came(child, answered);
    if (came_back)
        call_the_roll(fmt::format("the connection to {} was lost for a moment", name_of(child)));
    else
        invite(child);
}

void Tree::invite(int child) {
    if (calls_.call(child))
        links_.send(link_of_.at(child), wire::Roll{calls_.number()});
    else
        call_the_roll(fmt::format("{} has lost its connection and come to another parent", name_of(child)));
}

void Tree::from_child(int child, const wire::Message& message) {
    if (auto* m = std::get_if<wire::Here>(&message))
        here(child, *m);
    else if (auto* m = std::get_if<wire::Missing>(&message))
        missing(*m);
    else if (calls_.is_here(child) || !is_said_again(message))
        on_message(child, message);
}

void Tree::here(int child, const wire::Here& answer) {
    if (!calls_.here(child, answer)) return;
    for (int node : answer.nodes)
        if (members_.here(node)) on_here(node);
    if (!answer.groups.empty()) on_message(child, wire::Joined{answer.groups});
}

// The message may be of an earlier call: that daemon may have answered this one elsewhere, and it was called
// for this very reason.
void Tree::missing(const wire::Missing& message) {
    const bool news = message.roll == calls_.number();
    const std::string name = name_of(message.node);
    const NodeInfo* info = members_.find(message.node);
    if (message.how != wire::Absence::moved && info && (news || info->away_until != 0))
        gone(message.node, message.how == wire::Absence::silent);
    if (!news) return;
    switch (message.how) {
        case wire::Absence::left:
            return call_the_roll(name + " is gone");
        case wire::Absence::silent:
            return call_the_roll(name + " has not been heard for too long");
        case wire::Absence::moved:
            return call_the_roll(name + " has lost its connection and come to another parent");
    }
}

void Tree::gone(int node, bool silent) {
    members_.left(node, silent, now_ms());
    if (patient_ && returns_) return;
    const std::vector<int> below = returns_ ? std::vector<int>() : members_.below(node);
    lose(node, false);
    for (int other : below) lose(other, true);
}

void Tree::lose(int node, bool with_another) {
    const NodeInfo* known = members_.find(node);
    if (!known) return;
    NodeInfo info = *known;
    info.with_another = with_another;
    members_.forget(node);
    on_lost(node, info);
}

// When the job is over daemons leave one after the other, and nobody waits for what they say.
void Tree::call_the_roll(const std::string& why) {
    if (!patient_) return;
    calls_.begin(calls_.number() + 1);
    members_.call(now_ms());
    on_call(why);
    for (auto& [child, link] : link_of_)
        if (calls_.call(child)) links_.send(link, wire::Roll{calls_.number()});
}

std::string Tree::name_of(int node) {
    const NodeInfo* info = members_.find(node);
    return info ? fmt::format("the node daemon of {} (pid {})", info->host, info->pid) : "a node daemon";
}

void Tree::closed(int link, Links::End how) {
    auto found = child_of_.find(link);
    if (found == child_of_.end()) {
        if (harmless_.erase(link) == 0) on_lost(-1, {});
        return;
    }
    const int child = found->second;
    const bool silent = how == Links::End::silent;
    std::vector<int> below;  // it was their way
    for (auto& [node, info] : members_.all())
        if (node != child && calls_.way_to(node) == child) below.push_back(node);
    harmless_.erase(link);
    child_of_.erase(found);
    link_of_.erase(child);
    calls_.left(child);
    const std::string name = name_of(child);
    gone(child, how != Links::End::closed);
    if (!patient_ || !returns_)
        for (int node : below) gone(node, false);
    call_the_roll(silent ? name + " has not been heard for too long" : name + " is gone");
}

void Tree::expect(int node, uint32_t ranks, uint32_t all) {
    if (NodeInfo* info = members_.find(node)) info->ranks = ranks;
    allow(node, all);
}

void Tree::allow(int node, uint32_t ranks) {
    auto link = link_of_.find(calls_.way_to(node));
    uint64_t room = kNodePayload + uint64_t{ranks} * kRankPayload;
    if (link != link_of_.end())
        links_.allow(link->second, static_cast<uint32_t>(std::min<uint64_t>(room, wire::kMaxPayload)));
}

void Tree::broadcast(const wire::Message& message) {
    wire::Order order{++next_order_, wire::encode(message)};
    always(order.number > orders_.newest(), "an order with the number of an earlier one");
    orders_.add(order);
    const bool followed = is_followed(message);
    for (auto& [child, link] : link_of_) followed ? links_.put(link, order) : links_.send(link, order);
}

void Tree::to_children(const wire::Message& message) {
    for (auto& [child, link] : link_of_) links_.send(link, message);
}

void Tree::send(int node, const wire::Message& message) {
    auto link = link_of_.find(calls_.way_to(node));
    if (link == link_of_.end()) return;
    if (link->first == node)
        links_.send(link->second, message);
    else
        links_.send(link->second, wire::To{node, wire::encode(message)});
}

}  // namespace fermata::tree
