// A renewal: the ranks come to a safe state as for a checkpoint, and go on with new lower halves.
#include "base/clock.h"
#include "root/json.h"
#include "root/root.h"

namespace fermata::root {

// In place of save and commit. Every rank stands until all have a child that could go on.
void Root::renew(const Request& request, double end) {
    enter("renew");
    launcher_->renew(++worlds_);
    question(wire::Renew{attempt_.epoch, worlds_, *request.renewal});
    const auto& heard = tally_.answers();
    const double limit = request.timeout > 0 ? end : monotonic_s() + settings_.limits.save;
    until(
        [&] {
            if (!heard.save_error.empty()) throw Abandoned{heard.save_error};
            return heard.saved == start_.ranks();
        },
        limit, "every rank to start its new libraries");
    enter("resume");
    resume(false);
    leave_phase();
    Outcome& now = attempt_.outcome;
    now.ok = true;
    now.seconds = monotonic_s() - attempt_.start;
    for (auto& [name, seconds] : now.phases)
        now.detail += fmt::format("{}{} {:.3f} s", now.detail.empty() ? "" : ", ", name, seconds);
    now.line = fmt::format("{} {} new libraries below, in {:.2f} s", start_.ranks(),
                           start_.ranks() == 1 ? "rank has" : "ranks have", now.seconds);
}

void Root::answer_renewal(const Request& request, const Outcome& outcome) {
    note(journal::Kind::renewal, {{"ok", outcome.ok}, {"line", outcome.line}, {"seconds", outcome.seconds}});
    if (request.client < 0) return;
    nlohmann::json phases = nlohmann::json::object();
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

}  // namespace fermata::root
