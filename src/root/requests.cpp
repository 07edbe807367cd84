// Requests to the root: by commands at the control socket, and by the schedule.
#include <unistd.h>

#include <algorithm>

#include "base/log.h"
#include "base/text.h"
#include "root/control/json.h"
#include "root/root.h"

namespace fermata::root {

using nlohmann::json;

void Root::asked(int client, const ControlRequest& request) {
    if (request.verb == "checkpoint" && checkpoint_.in_progress() && settings_.save_options.refuse_busy) {
        control_.say(client,
                     dump({{"done", true},
                           {"ok", false},
                           {"code", static_cast<int>(ExitCode::refused)},
                           {"line", "a checkpoint is being written, and busy=refuse was asked for"}}));
        control_.finish(client);
    } else if (request.verb == "checkpoint") {
        requests_.push_back({"command", request.stop, request.timeout, client, request.own_state});
    } else if (request.verb == "renew") {
        requests_.push_back({"command", false, request.timeout, client, false, request.renewal});
    } else if (request.verb == "cancel") {
        cancel(client, request.checkpoint_only);
    } else if (request.verb == "status") {
        status_clients_.push_back(client);
        if (request.diagnosis) start_query();
    } else if (request.verb == "repair") {
        mend(client, request.generation);
    } else if (request.verb == "replicas") {
        steer(client, request);
    } else {
        control_.finish(client);
    }
}

// Cancels the checkpoint in progress, or the whole job.
void Root::cancel(int client, bool checkpoint_only) {
    bool possible = checkpoint_.in_progress() || !checkpoint_only;
    checkpoint_.cancel();
    if (!checkpoint_only) cancelled_ = true;
    control_.say(client, dump({{"done", true},
                               {"code", possible ? 0 : 1},
                               {"line", possible ? "cancelled" : "no checkpoint is in progress"}}));
    control_.finish(client);
}

// Takes requests that nobody makes by hand.
void Root::take_due() {
    const int64_t now = tree::now_ms();
    if (finalize_released_ || own_state_.ends_by() > 0) return;
    if (requests_.empty() && schedule_.take_interval(now)) requests_.push_back({"interval", false, 0, -1});
    if (!running_ || losses_.any()) return;
    switch (schedule_.take_walltime(now)) {
        case Schedule::Due::nothing:
            return;
        case Schedule::Due::measure:
            return requests_.push_back({"measure", false, 0, -1});
        case Schedule::Due::stop:
            break;
    }
    // The limit of a batch job may have been changed meanwhile.
    if (settings_.left_in_slot)
        if (auto left = settings_.left_in_slot()) {
            schedule_.ends_at(tree::now_ms() + static_cast<int64_t>(*left * 1000));
            if (tree::now_ms() < schedule_.stop_due()) return;
            (void)schedule_.take_walltime(tree::now_ms());
        }
    const double left = static_cast<double>(schedule_.end_of_walltime() - tree::now_ms()) / 1000;
    requests_.push_front({"walltime", true, std::max(left, 1.0), -1});
}

void Root::take_requests() {
    if (waits_for_recovery() && !finalize_released_) return;  // not all ranks are there
    take_due();
    if (requests_.empty()) return;
    Request request = requests_.front();
    requests_.pop_front();
    note(journal::Kind::request, {{"origin", request.origin}, {"stop", request.stop}});
    if (!request.renewal && (request.own_state || settings_.own_state)) return ask_program(request);
    Outcome outcome;
    if (signals_seen_.suspended) {
        outcome.code = ExitCode::refused;
        outcome.line = fmt::format("the job is suspended (SIGTSTP): kill -CONT {} lets it go on", ::getpid());
    } else if (request.renewal) {
        auto take = [&] { return checkpoint_.take(request, store::LevelName::files, 0); };
        outcome = again_if_asked(take(), take);
    } else {
        auto take = [&](store::LevelName level) {
            Outcome done = checkpoint_.take(request, level, ended_.bytes);
            // The last one of a job goes to files.
            if (done.ok && checkpoint_.level() == store::LevelName::files) schedule_.measured(done.measured);
            return done;
        };
        const store::LevelName level = request.is_to_last() ? store::LevelName::files : keeper_.first_level();
        outcome = take(level);
        // Room was there when it was asked for, and then was not.
        if (!outcome.ok && checkpoint_.level() != store::LevelName::files && !over() &&
            !tally_.answers().save_error.empty()) {
            say(fmt::format("not saved in {}: {}; files are next",
                            checkpoint_.level() == store::LevelName::memory ? "memory" : "local directories",
                            outcome.line));
            outcome = take(store::LevelName::files);
        }
        outcome = again_if_asked(std::move(outcome), [&] { return take(level); });
    }
    if (request.renewal) return answer_renewal(request, outcome);
    answer(request, outcome);
    done_with(request, outcome);
    if (keeper_.planned().on()) schedule_.interval_is(settings_.interval);
    if (!finalize_released_) schedule_.plan(tree::now_ms());
}

// Once does: what made a rank ask for it is known from then on. Twice, and then it is said as a failure.
Outcome Root::again_if_asked(Outcome outcome, const std::function<Outcome()>& take) {
    for (int more = 2; !outcome.ok && tally_.answers().again && more > 0; --more) {
        spdlog::info("another one at once");
        outcome = take();
    }
    return outcome;
}

void Root::answer_renewal(const Request& request, const Outcome& outcome) {
    if (outcome.ok) members_.renewed();
    note(journal::Kind::renewal, {{"ok", outcome.ok}, {"line", outcome.line}, {"seconds", outcome.seconds}});
    json phases = json::object();
    for (auto& [name, seconds] : outcome.phases) phases[name] = seconds;
    control_.say(request.client, dump({{"done", true},
                                       {"ok", outcome.ok},
                                       {"code", static_cast<int>(outcome.ok ? ExitCode::ok : outcome.code)},
                                       {"line", outcome.line},
                                       {"detail", outcome.detail},
                                       {"job", settings_.job},
                                       {"seconds", outcome.seconds},
                                       {"phases", phases},
                                       {"warnings", outcome.warnings},
                                       {"diagnosis", outcome.diagnosis}}));
    control_.finish(request.client);
}

// Does what follows from it for the job.
void Root::done_with(const Request& request, const Outcome& outcome) {
    if (outcome.ok && request.stop) {
        stopped_ = true;
        say(fmt::format("checkpointed and stopped: `fermata restart --ckpt-dir {}` continues it{}",
                        shell_quoted(settings_.ckpt_dir), settings_.key ? " (with its --encrypt-key)" : ""));
    }
    if (outcome.ok || !request.stop || over()) return;
    if (request.origin == "signal") ask_launcher_to_end();  // asked to go: without a checkpoint, then
    if (request.origin == "walltime") schedule_.stop_failed(tree::now_ms());
    if (request.origin == "interrupt") {
        signals_seen_.stop = false;
        say("not saved: the job goes on; Ctrl-C once more ends it as it is");
    }
}

void Root::answer(const Request& request, const Outcome& outcome) {
    ended_.newest = outcome;
    json fields = {{"ok", outcome.ok},
                   {"line", outcome.line},
                   {"generation", outcome.generation.name()},
                   {"level", outcome.directory.empty() ? store::name_of(checkpoint_.level()) : "program"},
                   {"origin", request.origin}};
    if (outcome.ok) {
        const journal::Measured& m = outcome.measured;
        fields["bytes"] = outcome.bytes;
        fields["seconds"] = outcome.seconds;
        fields["standing"] = m.standing;
        fields["behind"] = m.behind;
        fields["cost"] = m.cost();
        fields["bandwidth"] = m.writing > 0 ? static_cast<double>(m.bytes) / m.writing : 0;
    }
    note(journal::Kind::checkpoint, std::move(fields));
    if (outcome.ok) ended_.bytes = outcome.bytes;
    if (request.client >= 0) {
        json phases = json::object();
        for (auto& [name, seconds] : outcome.phases) phases[name] = seconds;
        control_.say(request.client,
                     dump({{"done", true},
                           {"ok", outcome.ok},
                           {"code", static_cast<int>(outcome.ok ? ExitCode::ok : outcome.code)},
                           {"line", outcome.line},
                           {"detail", outcome.detail},
                           {"job", settings_.job},
                           {"generation", outcome.generation.name()},
                           {"directory", outcome.directory.empty() ? settings_.ckpt_dir : outcome.directory},
                           {"bytes", outcome.bytes},
                           {"seconds", outcome.seconds},
                           {"phases", phases},
                           {"warnings", outcome.warnings},
                           {"diagnosis", outcome.diagnosis}}));
        control_.finish(request.client);
    } else if (!launcher_end_ || outcome.ok) {
        // Nobody asked by hand: failures are said, successes only on request. An interval that fell into the
        // end of the job is nobody's failure; of a rank's death the launcher tells.
        if (!outcome.ok && !losses_.any())
            say(fmt::format("checkpoint ({}): {}", request.origin, outcome.line));
        else if (outcome.ok && settings_.verbose)
            say(fmt::format("{} ({})", outcome.line, outcome.detail));
        else if (outcome.ok && request.stop)
            say(outcome.line);
    }
}

}  // namespace fermata::root
