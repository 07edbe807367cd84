// What node daemons say, and that they are gone.
#include <algorithm>

#include "base/log.h"
#include "root/root.h"

namespace fermata::root {

void Root::fail_job(const std::string& why, int32_t code) {
    if (!fatal_) fatal_ = wire::Fatal{"error: " + why, code};
}

// Of a launcher that leaves the other ranks alone: they wait for the dead one, sooner or later.
void Root::rank_died(const std::string& line) {
    if (over()) return;
    say(line);
    if (somebody_gone_.empty()) somebody_gone_ = line;
    launcher_->ask_to_end();
}

// `child`: the daemon right below the root in whose subtree it was said.
void Root::from_node(int child, const wire::Message& message) {
    spdlog::debug("node {}: {}", child, wire::name_of(message));
    if (launcher_ && launcher_->heard(child, message)) return;
    if (auto* m = std::get_if<wire::Clock>(&message)) {
        clock_from(child, *m);
    } else if (auto* m = std::get_if<wire::Joined>(&message)) {
        for (const wire::Group& group : m->groups) joined(group);
    } else if (auto* m = std::get_if<wire::InStarter>(&message)) {
        if (m->error.empty())
            start_.in_starter(*m, tree::now_ms());
        else
            fail_job(m->error);
    } else if (auto* m = std::get_if<wire::Gone>(&message)) {
        gone(*m);
    } else if (auto* m = std::get_if<wire::Diagnosis>(&message)) {
        inquiry_.heard(*m);
    } else if (auto* m = std::get_if<wire::Fatal>(&message)) {
        if (!fatal_) fatal_ = *m;
    } else if (tally_.take(child, message)) {
        if (auto* m = std::get_if<wire::Warning>(&message)) say(m->text);
    }
    look_whether_it_runs();
}

void Root::clock_from(int child, const wire::Clock& message) {
    auto known = clock_child_.find(child);
    if (!clock_ || known == clock_child_.end()) return;
    if (!clock_->from_child(known->second, wire::plain(message.bytes),
                            static_cast<uint64_t>(tree::now_ms()) * 1000000))
        tally_.take(child, wire::Refuse{attempt_.epoch,
                                        fmt::format("the protocol broke: from the node daemon on {}: {}",
                                                    tree_.nodes().at(child).host, clock_->error())});
}

void Root::joined(const wire::Group& group) {
    if (!tree_.nodes().count(group.node)) return spdlog::warn("ranks of an unknown daemon ({})", group.node);
    if (std::string why = start_.joined(group.node, group); !why.empty()) return fail_job(why);
    tree_.expect(group.node, static_cast<uint32_t>(start_.roster().at(group.node)),
                 static_cast<uint32_t>(start_.roster().here()));
}

void Root::gone(const wire::Gone& message) {
    auto ranks = tree::Ranks::of(message.ranks);
    if (!ranks || ranks->empty()) return;
    start_.roster().leave(message.node, *ranks);
    if (!message.clean && somebody_gone_.empty())
        somebody_gone_ = fmt::format("rank {} (pid {} on {}) is gone", ranks->first(), message.pid, message.host);
}

// The last rank has come, or is rebuilt; or one cannot be.
void Root::look_whether_it_runs() {
    if (running_ || over()) return;
    if (auto& refused = tally_.answers().not_restored)
        return fail_job(fmt::format("cannot restart from {}: {}", settings_.restored.name(), refused->error),
                        refused->code);
    if (!start_.complete()) return;
    if (settings_.restored) {
        tree_.broadcast(wire::Go{});
        tally_.forget_phases();
    }
    running_ = true;
    if (!finalize_released_) schedule_.plan(tree::now_ms());
}

// Its connection has ended: the daemon is dead, or comes back at once. The checkpoint in progress cannot be
// saved either way: the clock's messages are not repeated.
void Root::left_node(const tree::NodeInfo& info) {
    if (over()) return;
    std::string what = fmt::format("the node daemon of {} {}", info.host,
                                   info.silent ? "has not been heard for too long" : "is gone");
    attempt_.disturbed = what;
    if (somebody_gone_.empty() && start_.ranks() > 0) somebody_gone_ = away_ = what;
}

void Root::node_is_back(int node, const tree::NodeInfo& info) {
    spdlog::warn("the node daemon of {} is back", info.host);
    attempt_.disturbed = fmt::format("the connection to the node daemon of {} was lost for a moment", info.host);
    bool all = std::all_of(tree_.nodes().begin(), tree_.nodes().end(),
                           [](const auto& one) { return one.second.away_until == 0; });
    if (all && somebody_gone_ == away_ && !node_lost_) somebody_gone_.clear();
}

void Root::lost_node(int node, const tree::NodeInfo& info) {
    bool served = start_.roster().lose(node) > 0;
    if (launcher_) launcher_->lost(node);
    // A rank that was with it cannot report any more, and one that comes now may find none and end, which
    // MPICH's Hydra does not notice before MPI_Init: the others would wait there.
    if (!running_ && !finalize_released_ && !over()) {
        std::string which = info.host.empty()
                                ? "a node daemon"
                                : fmt::format("the node daemon of {} (pid {})", info.host, info.pid);
        return fail_job(fmt::format("{} has ended before the job ran: start it again", which));
    }
    if (!served) return;
    if (somebody_gone_.empty()) somebody_gone_ = fmt::format("the node daemon of {} is gone", info.host);
    // It may only stand still, and then its ranks wait for it, whatever the others do.
    if (info.silent) return;
    node_lost_ = true;
    // Its ranks go into the real MPI_Finalize by themselves, and nobody will hear of them.
    tree_.broadcast(wire::FinalizeReleased{});
}

void Root::pump_clock() {
    if (!clock_) return;
    clock_->poll(static_cast<uint64_t>(tree::now_ms()) * 1000000);
    clock::Bytes bytes;
    while (clock_->next_down(&bytes)) tree_.to_children(wire::Clock{wire::packed(bytes)});
}

}  // namespace fermata::root
