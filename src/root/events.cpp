// What node daemons say, and that they are gone.
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

void Root::from_node(int node, const wire::Message& message) {
    spdlog::debug("node {}: {}", node, wire::name_of(message));
    if (launcher_ && launcher_->heard(node, message)) return;
    if (auto* m = std::get_if<wire::Clock>(&message)) {
        clock_from(node, *m);
    } else if (auto* m = std::get_if<wire::Joined>(&message)) {
        for (const wire::Group& group : m->groups) joined(node, group);
    } else if (auto* m = std::get_if<wire::InStarter>(&message)) {
        if (m->error.empty())
            start_.in_starter(*m, tree::now_ms());
        else
            fail_job(m->error);
    } else if (auto* m = std::get_if<wire::Gone>(&message)) {
        gone(node, *m);
    } else if (auto* m = std::get_if<wire::Diagnosis>(&message)) {
        inquiry_.heard(*m);
    } else if (auto* m = std::get_if<wire::Fatal>(&message)) {
        if (!fatal_) fatal_ = *m;
    } else if (auto* m = std::get_if<wire::Warned>(&message)) {
        ranks_warned(m->signal);
    } else if (tally_.take(node, message)) {
        if (auto* m = std::get_if<wire::Warning>(&message)) say(m->text);
    }
    look_whether_it_runs();
}

void Root::clock_from(int node, const wire::Clock& message) {
    auto child = clock_child_.find(node);
    if (!clock_ || child == clock_child_.end()) return;
    if (!clock_->from_child(child->second, wire::plain(message.bytes),
                            static_cast<uint64_t>(tree::now_ms()) * 1000000))
        tally_.take(node, wire::Refuse{attempt_.epoch,
                                       fmt::format("the protocol broke: from the node daemon on {}: {}",
                                                   tree_.nodes()[node].host, clock_->error())});
}

void Root::joined(int node, const wire::Group& group) {
    const bool alone = group.size == 1 && (settings_.expected_ranks > 1 || start_.ranks() == 1);
    if (alone && launcher_)
        return fail_job(fmt::format("rank 0 of 1 on {}, and more were asked for: {}", group.host,
                                    launcher_->why_alone()));
    if (std::string why = start_.joined(node, group); !why.empty()) return fail_job(why);
    uint32_t here = static_cast<uint32_t>(start_.roster().at(node));
    tree_.nodes()[node].ranks = here;
    tree_.expect(node, here);
}

void Root::gone(int node, const wire::Gone& message) {
    auto ranks = tree::Ranks::of(message.ranks);
    if (!ranks || ranks->empty()) return;
    start_.roster().leave(node, *ranks);
    if (!message.clean && somebody_gone_.empty())
        somebody_gone_ =
            fmt::format("rank {} (pid {} on {}) is gone", ranks->first(), message.pid, message.host);
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

void Root::lost_node(int node, const tree::NodeInfo& info) {
    bool served = start_.roster().lose(node) > 0;
    if (launcher_) launcher_->lost(node);
    tally_.gone(node);
    // A rank that was with it cannot report any more, and one that comes now may find none and end, which
    // MPICH's Hydra does not notice before MPI_Init: the others would wait there.
    if (!info.spare && !running_ && !finalize_released_ && !over()) {
        std::string which = info.host.empty()
                                ? "a node daemon"
                                : fmt::format("the node daemon of {} (pid {})", info.host, info.pid);
        return fail_job(fmt::format("{} has ended before the job ran: start it again", which));
    }
    if (!served) return;
    lost_nodes_.push_back(info.host);
    if (somebody_gone_.empty()) somebody_gone_ = fmt::format("the node daemon of {} is gone", info.host);
    // Its ranks go into the real MPI_Finalize by themselves, and nobody will hear of them.
    tree_.broadcast(wire::FinalizeReleased{});
}

void Root::pump_clock() {
    if (!clock_) return;
    clock_->poll(static_cast<uint64_t>(tree::now_ms()) * 1000000);
    clock::Bytes bytes;
    while (clock_->next_down(&bytes)) tree_.broadcast(wire::Clock{wire::packed(bytes)});
}

}  // namespace fermata::root
