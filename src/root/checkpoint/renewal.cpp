// A renewal: the ranks come to a safe state as for a checkpoint, and go on with new lower halves. In place of
// save and commit.
#include "base/clock.h"
#include "root/checkpoint/checkpoint.h"
#include "root/plan/replicas.h"

namespace fermata::root {

// Every rank stands until all have a child that could go on.
void Checkpoint::renew(const Request& request, double end) {
    enter("renew");
    wire::Renew order = job_.next_world();
    order.epoch = attempt_.epoch;
    if (request.copies) order.copies = replicated(settings_.replicas, job_.ranks()).runs();
    ask(order);
    const auto& heard = tally_.answers();
    const double limit = request.timeout > 0 ? end : monotonic_s() + settings_.limits.save;
    until(
        [&] {
            if (!heard.save_error.empty()) throw Abandoned{heard.save_error};
            return heard.saved == job_.ranks();
        },
        limit, "every rank to start its new libraries");
    attempt_.begun = false;  // some may be on their way to where there is no way back from
    enter("resume");
    resume(false);
    job_.renewed();
    leave_phase();
    Outcome& now = attempt_.outcome;
    now.ok = true;
    now.seconds = monotonic_s() - attempt_.start;
    for (auto& [name, seconds] : now.phases)
        now.detail += fmt::format("{}{} {:.3f} s", now.detail.empty() ? "" : ", ", name, seconds);
    now.line = fmt::format("{} {} new libraries below, in {:.2f} s", job_.ranks(),
                           job_.ranks() == 1 ? "rank has" : "ranks have", now.seconds);
}

}  // namespace fermata::root
