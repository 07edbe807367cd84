#include "tree/relay.h"

#include <algorithm>

#include "base/invariant.h"
#include "tree/ranks.h"

namespace fermata::tree {
namespace {

constexpr size_t kMostWaiting = 1000;
constexpr size_t kMostGroups = 256;  // in one message

// The tally's name for a daemon; its own ranks have numbers from 0 on.
int tallied(int child) { return -2 - child; }

}  // namespace

// ---- upwards

void Relay::up(const wire::Message& message) {
    if (here_) out_.push_back({kUp, message});
}

// Many answers travel as one.
void Relay::up_here(const wire::Here& here) {
    if (!here_) return;
    auto* before =
        out_.empty() || out_.back().to != kUp ? nullptr : std::get_if<wire::Here>(&out_.back().message);
    if (!before || before->roll != here.roll || before->groups.size() + here.groups.size() > kMostGroups) {
        out_.push_back({kUp, here});
        return;
    }
    before->nodes.insert(before->nodes.end(), here.nodes.begin(), here.nodes.end());
    before->groups.insert(before->groups.end(), here.groups.begin(), here.groups.end());
}

void Relay::placed(const wire::Parent& parent) {
    always(node_ < 0 || node_ == parent.node, "a daemon with two numbers");
    node_ = parent.node;
    heard_ = parent.heard;
    for (wire::Group& group : groups_) group.node = node_;
    if (unclean_) unclean_->node = node_;
    for (wire::Message& message : waiting_) sign(message);
}

// The connection by which these come to the root does not tell who says them.
void Relay::sign(wire::Message& message) const {
    if (auto* m = std::get_if<wire::Ready>(&message))
        m->daemon = node_;
    else if (auto* m = std::get_if<wire::RankEnded>(&message))
        m->daemon = node_;
}

void Relay::above() {
    here_ = false;
    out_.push_back({kUp, wire::Attach{node_, heard_, calls_.number()}});
}

void Relay::roll(const wire::Roll& call) {
    if (call.number <= calls_.number()) return;  // a parent that has not heard that this daemon has answered
    for (auto& [child, ranks] : calls_.children()) tally_.gone(tallied(child));
    calls_.begin(call.number);
    here_ = true;
    up_here({call.number, {node_}, groups_});
    for (auto& [rank, starter] : starters_) up(starter);
    for (auto& [kind, said] : of_memory_) up(said);
    if (unclean_) up(*unclean_);
    if (fatal_) up(*fatal_);
    for (const wire::Message& message : std::exchange(waiting_, {})) up(message);
    tally_.say_again();
    for (auto& [child, ranks] : calls_.children()) invite(child);
}

// Facts that stand are remembered, for the next call; a message that is said once has to wait for it.
void Relay::hand_on(const wire::Message& message) {
    if (auto* fatal = std::get_if<wire::Fatal>(&message)) {
        if (!fatal_) fatal_ = *fatal;
    } else if (auto* gone = std::get_if<wire::Gone>(&message)) {
        if (!gone->clean && !unclean_) unclean_ = *gone;
    } else if (!here_ && !is_said_again(message) && waiting_.size() < kMostWaiting) {
        waiting_.push_back(message);
    }
    up(message);
}

void Relay::own(wire::Message message) {
    sign(message);
    if (auto* m = std::get_if<wire::Joined>(&message)) {
        for (wire::Group& group : m->groups) {
            group.node = node_;
            groups_.push_back(group);
            if (auto ranks = Ranks::of(group.ranks))
                std::erase_if(starters_, [&](const auto& one) { return ranks->contains(one.first); });
        }
    } else if (auto* m = std::get_if<wire::Gone>(&message)) {
        m->node = node_;
        left(*m);
    } else if (auto* m = std::get_if<wire::Moved>(&message)) {
        moved(m->rank, m->pid);
    } else if (auto* m = std::get_if<wire::Promoted>(&message)) {
        moved(m->rank, m->pid);
    } else if (auto* m = std::get_if<wire::InStarter>(&message)) {
        starters_[m->rank] = *m;
    } else if (is_said_again(message)) {
        of_memory_.insert_or_assign(message.index(), message);
    }
    hand_on(message);
}

// Ranks of this daemon.
void Relay::left(const wire::Gone& gone) {
    auto away = Ranks::of(gone.ranks);
    if (!away) return;
    for (wire::Group& group : groups_) {
        const auto all = Ranks::of(group.ranks);
        if (!all) continue;  // a process has said a number that no rank has: the root refuses it
        always(group.pids.size() == all->count(), "a group of ranks without a process for each");
        std::vector<int32_t> pids;
        Ranks stay = *all;
        stay.take_away(*away);
        size_t at = 0;
        all->each([&](int32_t rank) {
            if (stay.contains(rank)) pids.push_back(group.pids[at]);
            ++at;
        });
        group.ranks = stay.runs();
        group.pids = std::move(pids);
    }
    std::erase_if(groups_, [](const wire::Group& group) { return group.pids.empty(); });
}

// A rank of this daemon is another process now.
void Relay::moved(int32_t rank, int32_t pid) {
    for (wire::Group& group : groups_)
        if (const auto ranks = Ranks::of(group.ranks); ranks && ranks->contains(rank))
            group.pids.at(ranks->place_of(rank)) = pid;
}

void Relay::hand_up(uint32_t ranks, bool time) {
    if (!here_) return;
    for (const wire::Message& message : tally_.hand_up(ranks + calls_.ranks(), time)) up(message);
}

// ---- downwards

std::optional<wire::Message> Relay::order(const wire::Order& order) {
    if (order.number <= heard_) return std::nullopt;  // from a parent that was behind
    heard_ = order.number;
    orders_.add(order);
    for (auto& [child, ranks] : calls_.children()) out_.push_back({child, order});
    return wire::unwrapped(order.frame);
}

std::optional<wire::Message> Relay::to(const wire::To& letter) {
    if (letter.node == node_) return wire::unwrapped(letter.frame);
    if (int child = calls_.way_to(letter.node); child >= 0) out_.push_back({child, letter});
    return std::nullopt;
}

// ---- daemons below

void Relay::child(const wire::Attach& attach) {
    child_gone(attach.node, false);
    calls_.came(attach.node, attach.answered);
    for (const wire::Order& order : orders_.since(attach.heard)) out_.push_back({attach.node, order});
    if (here_) invite(attach.node);
}

void Relay::invite(int child) {
    if (calls_.call(child))
        out_.push_back({child, wire::Roll{calls_.number()}});
    else
        up(wire::Missing{calls_.number(), child, wire::Absence::moved});
}

void Relay::child_gone(int child, bool silent) {
    if (!calls_.has(child)) return;
    calls_.left(child);
    tally_.gone(tallied(child));
    up(wire::Missing{calls_.number(), child, silent ? wire::Absence::silent : wire::Absence::left});
}

bool Relay::from_child(int child, const wire::Message& message) {
    if (!calls_.has(child)) return true;
    if (auto* here = std::get_if<wire::Here>(&message)) {
        if (calls_.here(child, *here)) up_here(*here);
        return true;
    }
    if (auto* missing = std::get_if<wire::Missing>(&message)) {
        if (missing->roll == calls_.number()) up(*missing);
        return true;
    }
    if (is_said_again(message) && !calls_.is_here(child)) return true;
    if (std::holds_alternative<wire::Clock>(message) || std::holds_alternative<wire::Diagnosis>(message))
        return false;
    if (tally_.take(tallied(child), message)) return true;
    if (auto* m = std::get_if<wire::Joined>(&message)) {
        calls_.add_ranks(child, m->groups);
    } else if (auto* m = std::get_if<wire::Gone>(&message)) {
        if (auto ranks = Ranks::of(m->ranks)) calls_.take_ranks(child, *ranks);
    }
    hand_on(message);
    return true;
}

}  // namespace fermata::tree
