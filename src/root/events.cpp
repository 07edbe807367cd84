// Messages of node daemons, and the loss of daemons.
#include <nlohmann/json.hpp>
#include <utility>

#include "base/log.h"
#include "root/checkpoint/exchange.h"
#include "root/root.h"

namespace fermata::root {

using nlohmann::json;

void Root::note(journal::Kind kind, json fields) const {
    if (settings_.journal) settings_.journal->note(kind, std::move(fields));
}

void Root::fail_job(const std::string& why, int32_t code) {
    if (!fatal_) fatal_ = wire::Fatal{"error: " + why, code};
}

// Only the first loss is news.
template <class Noted>
void Root::lost(Noted noted) {
    const std::string before = losses_.why();
    noted();
    if (losses_.why() == before || over() || stands_by_.yes) return;
    json fields = {{"why", losses_.why()}, {"host", losses_.host()}, {"pid", losses_.pid()}};
    if (losses_.rank() >= 0) fields["rank"] = losses_.rank();
    note(journal::Kind::loss, std::move(fields));
}

// The launcher has heard of it by itself, and ends the job: it knows the dead one's code.
void Root::rank_died(const std::string& line) {
    if (over()) return;
    if (stands_by_.yes) return fail_job(line);
    const bool unmasked = !settings_.replicas.empty() && line.starts_with("rank ");
    say(unmasked ? line + ": it has no copy that could take its place" : line);
    lost([&] { losses_.launcher_ends(line, tree::now_ms()); });
    launcher_->ask_to_end();
}

// `child`: the daemon right below the root in whose subtree it was said.
void Root::from_node(int child, const wire::Message& message) {
    spdlog::debug("node {}: {}", child, wire::name_of(message));
    if (auto* m = std::get_if<wire::Output>(&message)) copies_.written.add(m->rank, m->error, m->text.size());
    if (launcher_ && launcher_->heard(message)) return;
    if (auto* m = std::get_if<wire::Clock>(&message)) {
        auto node = tree_.nodes().find(child);
        checkpoint_.clock_from(child, *m, node == tree_.nodes().end() ? "" : node->second.host);
    } else if (auto* m = std::get_if<wire::Joined>(&message)) {
        for (const wire::Group& group : m->groups) joined(group);
    } else if (auto* m = std::get_if<wire::InStarter>(&message)) {
        if (m->error.empty())
            start_.in_starter(*m, tree::now_ms());
        else
            fail_job(m->error);
    } else if (auto* m = std::get_if<wire::Gone>(&message)) {
        gone(*m);
    } else if (auto* m = std::get_if<wire::Moved>(&message)) {
        start_.moved(*m);
    } else if (heard_of_copies(child, message)) {
        // The rest is done in the root's own turn.
    } else if (auto* m = std::get_if<wire::Diagnosis>(&message)) {
        inquiry_.heard(*m);
    } else if (auto* m = std::get_if<wire::Fatal>(&message)) {
        if (!fatal_) fatal_ = *m;
    } else if (auto* m = std::get_if<wire::Warned>(&message)) {
        ranks_warned(m->signal);
    } else if (auto* m = std::get_if<wire::OwnState>(&message)) {
        own_state_.heard(*m, tree::now_ms());
    } else if (keeper_.heard(message)) {
        // The next step is seen to by whoever waits for the answer.
    } else if (tally_.take(child, message)) {
        if (auto* m = std::get_if<wire::Warning>(&message)) say(m->text);
        auto node = tree_.nodes().find(child);
        if (node != tree_.nodes().end()) checkpoint_.heard_from(node->second.host);
    }
    look_whether_it_runs();
}

void Root::joined(const wire::Group& group) {
    if (!tree_.nodes().count(group.node)) return spdlog::warn("ranks of an unknown daemon ({})", group.node);
    const bool alone = !running_ && group.size == 1 && (settings_.expected_ranks > 1 || start_.ranks() == 1);
    if (alone && launcher_)
        return fail_job(fmt::format("rank 0 of 1 on {}, and more were asked for: {}", group.host,
                                    launcher_->why_alone()));
    if (std::string why = start_.joined(group.node, group); !why.empty()) return fail_job(why);
    tree_.expect(group.node, static_cast<uint32_t>(start_.roster().at(group.node)),
                 static_cast<uint32_t>(start_.roster().here()));
}

void Root::gone(const wire::Gone& message) {
    auto ranks = tree::Ranks::of(message.ranks);
    if (!ranks || ranks->empty()) return;
    start_.roster().leave(message.node, *ranks);
    if (message.pid == 0) nobody_takes_over(message.node, *ranks, message.host);
    if (message.clean) return;
    lost([&] {
        losses_.rank_gone({ranks->first(), message.pid, message.host, message.code}, tree::now_ms());
    });
}

// Ranks whose images hold message logs rebuild once they know what those of the others say.
void Root::exchange_logs_of_images() {
    if (!settings_.message_log || !settings_.restored || logs_ == Logs::exchanged) return;
    const wire::AskLog question{settings_.first_epoch()};
    const auto behind = start_.furthest_behind();
    if (logs_ == Logs::unknown && behind && behind->phase >= wire::RestartPhase::rebuild) {
        logs_ = Logs::asked;
        tally_.ask(question);
        tree_.broadcast(question);
    }
    if (logs_ != Logs::asked || tally_.answers().logs < start_.ranks()) return;
    logs_ = Logs::exchanged;
    try {
        exchange_logs(*job_, tally_, question.epoch);
    } catch (const Error& error) {
        fail_job(fmt::format("cannot restart from {}: {}", settings_.restored.name(), error.what()));
    }
}

// The last rank has come, or is rebuilt; or one cannot be.
void Root::look_whether_it_runs() {
    if (running_ || stands_by_.yes || over()) return;
    choose_generation();
    if (auto& refused = tally_.answers().not_restored)
        return fail_job(fmt::format("cannot restart from {}: {}", settings_.restored.name(), refused->error),
                        refused->code);
    exchange_logs_of_images();
    if (!start_.complete() || !place_levels()) return;
    if (settings_.restored) {
        tree_.broadcast(wire::Go{});
        tally_.forget_phases();
    }
    if (!plan_copies()) return;
    running_ = true;
    own_state_.runs(tree::now_ms());
    note(journal::Kind::running, {{"seconds", static_cast<double>(tree::now_ms() - started_) / 1000},
                                  {"ranks", start_.ranks()},
                                  {"nodes", tree_.nodes().size()},
                                  {"mpi", start_.mpi()}});
    if (!finalize_released_) schedule_.plan(tree::now_ms());
}

// The checkpoint in progress cannot be saved: the clock's messages are not repeated.
void Root::roll_is_called(const std::string& why) {
    tally_.nobody_is_here();
    keeper_.roll_is_called();
    if (over()) return;
    spdlog::warn("the roll is called: {}", why);
    checkpoint_.disturbed(why);
}

// All its ranks follow.
void Root::node_is_here(int node) {
    start_.roster().lose(node);
    tree_.expect(node, 0, static_cast<uint32_t>(start_.roster().here()));
}

void Root::lost_node(int node, const tree::NodeInfo& info) {
    const bool masked = goes_on_without(node, info);
    bool served = start_.roster().lose(node) > 0;
    if (launcher_) launcher_->lost(node);
    // Nobody suspects the host of one that has only lost its way to the root.
    if (masked || info.with_another) return;
    // A rank that was with it cannot report any more, and one that comes now may find none and end, which
    // MPICH's Hydra does not notice before MPI_Init: the others would wait there.
    if (!running_ && !finalize_released_ && !over()) {
        std::string which = info.host.empty()
                                ? "a node daemon"
                                : fmt::format("the node daemon of {} (pid {})", info.host, info.pid);
        std::string line = fmt::format("{} has ended before the job ran: start it again", which);
        // Slurm kills it with the last rank of its node, whose exit code srun brings a moment later.
        if (launcher_ && launcher_->ends_with_its_ranks()) return start_.daemon_gone(line, tree::now_ms());
        return fail_job(line);
    }
    if (!served) return;
    const int64_t now = tree::now_ms();
    lost([&] { losses_.daemon_gone(info.host, info.pid, info.left ? info.left_since : now, now); });
    // Its ranks go into the real MPI_Finalize by themselves, and nobody will hear of them.
    tree_.broadcast(wire::FinalizeReleased{});
}

}  // namespace fermata::root
