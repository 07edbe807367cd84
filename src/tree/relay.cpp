#include "tree/relay.h"

#include <algorithm>

#include "base/log.h"

namespace fermata::tree {
namespace {

constexpr size_t kMostWaiting = 1000;

// The tally's name for a daemon; its own ranks have numbers from 0 on.
int tallied(int child) { return -2 - child; }

uint32_t ranks_of(const std::vector<wire::Group>& groups) {
    uint32_t count = 0;
    for (const wire::Group& group : groups) count += static_cast<uint32_t>(group.pids.size());
    return count;
}

}  // namespace

// ---- upwards

void Relay::up(const wire::Message& message) {
    if (above_) out_.push_back({kUp, message});
}

bool Relay::placed(const wire::Parent& parent) {
    node_ = parent.node;
    heard_ = parent.heard;
    for (wire::Group& group : groups_[-1]) group.node = node_;
    groups_[node_] = std::move(groups_[-1]);
    groups_.erase(-1);
    return parent.way.empty();
}

void Relay::above(bool elsewhere) {
    above_ = true;
    if (elsewhere) {
        Ways::Stations stations = ways_.all();
        stations.insert(stations.begin(), {node_, ++turn_});
        up(wire::Attach{heard_, std::move(stations)});
    }
    wire::Joined joined;
    for (auto& [node, groups] : groups_)
        for (size_t i = 0; i < groups.size(); ++i) {
            joined.groups.push_back(groups[i]);
            joined.groups.back().again = i == 0;
        }
    if (!joined.groups.empty()) up(joined);
    for (auto& [rank, starter] : starters_) up(starter);
    if (unclean_) up(*unclean_);
    if (fatal_) up(*fatal_);
    for (const wire::Message& message : std::exchange(waiting_, {})) up(message);
    tally_.say_again();
}

// What stands, or has to wait for a parent.
void Relay::remember(const wire::Message& message) {
    if (auto* joined = std::get_if<wire::Joined>(&message)) {
        for (const wire::Group& group : joined->groups)
            if (auto ranks = Ranks::of(group.ranks))
                std::erase_if(starters_, [&](const auto& one) { return ranks->contains(one.first); });
    } else if (auto* starter = std::get_if<wire::InStarter>(&message); starter && starter->error.empty()) {
        starters_[starter->rank] = *starter;
    } else if (auto* fatal = std::get_if<wire::Fatal>(&message)) {
        if (!fatal_) fatal_ = *fatal;
    } else if (auto* gone = std::get_if<wire::Gone>(&message)) {
        if (!gone->clean && !unclean_) unclean_ = *gone;
    } else if (!above_ && waiting_.size() < kMostWaiting) {
        waiting_.push_back(message);
    }
}

void Relay::hand_on(const wire::Message& message) {
    remember(message);
    up(message);
}

void Relay::own(wire::Message message) {
    if (auto* m = std::get_if<wire::Joined>(&message)) {
        for (wire::Group& group : m->groups) {
            group.node = node_;
            groups_[node_].push_back(group);
        }
    } else if (auto* m = std::get_if<wire::Gone>(&message)) {
        m->node = node_;
        left(*m);
    }
    hand_on(message);
}

void Relay::hand_up(uint32_t ranks, bool time) {
    if (!above_) return;
    for (const wire::Message& message : tally_.hand_up(ranks + ranks_below_, time)) up(message);
}

// ---- downwards

void Relay::send_down(const wire::Message& message) {
    for (int child : children_) out_.push_back({child, message});
}

std::optional<wire::Message> Relay::order(const wire::Order& order) {
    if (order.number <= heard_) {
        tally_.say_again();  // a parent that is behind has only now begun to count anew
        return std::nullopt;
    }
    heard_ = order.number;
    orders_.add(order);
    send_down(order);
    return wire::open(order.frame);
}

std::optional<wire::Message> Relay::to(const wire::To& letter) {
    if (letter.node == node_) return wire::open(letter.frame);
    if (int child = ways_.to(letter.node); child >= 0) out_.push_back({child, letter});
    return std::nullopt;
}

// ---- daemons below

void Relay::child(int child, const wire::Attach& attach) {
    if (children_.count(child)) child_gone(child, false);
    children_.insert(child);
    Ways::News news = ways_.came(child, attach.stations);
    heed(news);
    if (!news.old) hand_on(wire::Attached{node_, attach.stations});
    for (const wire::Order& order : orders_.since(attach.heard)) out_.push_back({child, order});
}

void Relay::child_gone(int child, bool silent) {
    if (!children_.count(child)) return;
    wire::Left left{ways_.gone(child), silent};
    tally_.gone(tallied(child));
    for (const wire::Station& one : left.stations) forget(one.node);
    children_.erase(child);
    if (!left.stations.empty()) hand_on(left);
    tally_.say_again();  // who hears of it forgets what this daemon has said
}

// What these daemons have said stands no more, and these children say theirs again.
void Relay::heed(const Ways::News& news) {
    for (int node : news.forget) forget(node);
    for (int child : news.not_believed) tally_.gone(tallied(child));
}

// A daemon below stands there no more, with its ranks.
void Relay::forget(int node) {
    auto groups = groups_.find(node);
    if (groups == groups_.end() || node == node_) return;
    ranks_below_ -= ranks_of(groups->second);
    groups_.erase(groups);
}

void Relay::joined(int child, const wire::Group& group) {
    auto ranks = Ranks::of(group.ranks);
    // The root refuses what cannot be, and whose daemon nobody knows.
    if (!ranks || ranks->count() != group.pids.size() || ways_.to(group.node) != child) return;
    std::vector<wire::Group>& groups = groups_[group.node];
    if (group.again) {
        ranks_below_ -= ranks_of(groups);
        groups.clear();
    }
    groups.push_back(group);
    ranks_below_ += ranks->count();
}

void Relay::left(const wire::Gone& gone) {
    auto away = Ranks::of(gone.ranks);
    auto groups = groups_.find(gone.node);
    if (!away || groups == groups_.end()) return;
    uint32_t before = ranks_of(groups->second);
    for (wire::Group& group : groups->second) {
        std::vector<int32_t> pids;
        Ranks all = *Ranks::of(group.ranks), stay = all;
        stay.take_away(*away);
        size_t at = 0;
        all.each([&](int32_t rank) {
            if (stay.contains(rank)) pids.push_back(group.pids[at]);
            ++at;
        });
        group.ranks = stay.runs();
        group.pids = std::move(pids);
    }
    std::erase_if(groups->second, [](const wire::Group& group) { return group.pids.empty(); });
    if (gone.node != node_) ranks_below_ -= before - ranks_of(groups->second);
    if (groups->second.empty()) groups_.erase(groups);
}

bool Relay::from_child(int child, const wire::Message& message) {
    if (!children_.count(child)) return true;
    if (auto* m = std::get_if<wire::Joined>(&message)) {
        for (const wire::Group& group : m->groups) joined(child, group);
    } else if (auto* m = std::get_if<wire::Gone>(&message)) {
        left(*m);
    } else if (auto* m = std::get_if<wire::Attached>(&message)) {
        Ways::News news = ways_.came(child, m->stations);
        heed(news);
        if (news.old) return true;
    } else if (auto* m = std::get_if<wire::Left>(&message)) {
        heed(ways_.left(child, m->stations));
        hand_on(message);
        tally_.say_again();
        return true;
    } else if (std::holds_alternative<wire::Clock>(message) || std::holds_alternative<wire::Diagnosis>(message)) {
        return false;
    } else if (Tally::replaces(message)) {
        if (ways_.believed(child)) tally_.take(tallied(child), message);
        return true;
    } else if (tally_.take(tallied(child), message)) {
        return true;
    }
    hand_on(message);
    return true;
}

std::map<int, uint32_t> Relay::children() const {
    std::map<int, uint32_t> all;
    for (int child : children_) all[child] = 0;
    for (auto& [node, groups] : groups_)
        if (int child = ways_.to(node); child >= 0) all[child] += ranks_of(groups);
    return all;
}

}  // namespace fermata::tree
