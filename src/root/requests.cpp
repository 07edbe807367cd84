// What is asked of the root: by commands at the control socket, and by the schedule.
#include <unistd.h>

#include "base/log.h"
#include "base/text.h"
#include "root/json.h"
#include "root/root.h"

namespace fermata::root {

using nlohmann::json;

void Root::asked(int client, const ControlRequest& request) {
    if (request.verb == "checkpoint" && attempt_.in_progress && settings_.save_options.refuse_busy) {
        control_.say(client,
                     dump({{"done", true},
                           {"ok", false},
                           {"code", static_cast<int>(ExitCode::refused)},
                           {"line", "a checkpoint is being written, and busy=refuse was asked for"}}));
        control_.finish(client);
    } else if (request.verb == "checkpoint") {
        requests_.push_back({"command", request.stop, request.timeout, client});
    } else if (request.verb == "cancel") {
        cancel(client, request.checkpoint_only);
    } else if (request.verb == "status") {
        status_clients_.push_back(client);
        if (request.diagnosis) start_query();
    } else {
        control_.finish(client);
    }
}

// Of the checkpoint in progress, or of the whole job.
void Root::cancel(int client, bool checkpoint_only) {
    bool possible = attempt_.in_progress || !checkpoint_only;
    if (attempt_.in_progress) attempt_.cancelled = true;
    if (!checkpoint_only) cancelled_ = true;
    control_.say(client, dump({{"done", true},
                               {"code", possible ? 0 : 1},
                               {"line", possible ? "cancelled" : "no checkpoint is in progress"}}));
    control_.finish(client);
}

void Root::take_requests() {
    const int64_t now = tree::now_ms();
    if (requests_.empty() && !finalize_released_ && schedule_.take_interval(now))
        requests_.push_back({"interval", false, 0, -1});
    if (running_ && !finalize_released_ && schedule_.take_walltime(now))
        requests_.push_front({"walltime", true, settings_.walltime, -1});
    if (requests_.empty()) return;
    Request request = requests_.front();
    requests_.pop_front();
    Outcome outcome;
    if (signals_seen_.suspended) {
        outcome.code = ExitCode::refused;
        outcome.line = fmt::format("the job is suspended (SIGTSTP): kill -CONT {} lets it go on", ::getpid());
    } else {
        outcome = checkpoint(request);
        // Once does: what made a rank ask for it is known from then on. Twice, and then it is said as a
        // failure.
        for (int more = 2; !outcome.ok && tally_.answers().again && more > 0; --more) {
            spdlog::info("another one at once");
            outcome = checkpoint(request);
        }
    }
    answer(request, outcome);
    if (outcome.ok && request.stop) {
        stopped_ = true;
        say(fmt::format("checkpointed and stopped: `fermata restart --ckpt-dir {}` continues it{}",
                        shell_quoted(settings_.ckpt_dir), settings_.key ? " (with its --encrypt-key)" : ""));
    }
    if (!outcome.ok && request.origin == "signal" && request.stop)
        ask_launcher_to_end();  // asked to go: without a checkpoint, then
    if (!finalize_released_) schedule_.plan(tree::now_ms());
}

void Root::answer(const Request& request, const Outcome& outcome) {
    last_ = outcome;
    if (outcome.ok) last_bytes_ = outcome.bytes;
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
                           {"directory", settings_.ckpt_dir},
                           {"bytes", outcome.bytes},
                           {"seconds", outcome.seconds},
                           {"phases", phases},
                           {"warnings", outcome.warnings},
                           {"diagnosis", outcome.diagnosis}}));
        control_.finish(request.client);
    } else if (!launcher_end_ || outcome.ok) {
        // Nobody asked by hand: failures are said, successes only on request. An interval that fell into the
        // end of the job is nobody's failure; of a rank's death the launcher tells.
        if (!outcome.ok && somebody_gone_.empty())
            say(fmt::format("checkpoint ({}): {}", request.origin, outcome.line));
        else if (outcome.ok && settings_.verbose)
            say(fmt::format("{} ({})", outcome.line, outcome.detail));
        else if (outcome.ok && request.stop)
            say(outcome.line);
    }
}

}  // namespace fermata::root
