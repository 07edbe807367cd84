// A renewal: the ranks come to a safe state as for a checkpoint, and go on with new lower halves. In place of
// save and commit. With a message log no safe state is needed.
#include "base/clock.h"
#include "base/invariant.h"
#include "root/checkpoint/checkpoint.h"
#include "root/checkpoint/exchange.h"

namespace fermata::root {

// Ranks that keep a message log stand wherever they are, and nothing is drained: what was on its way comes
// out of the logs again.
void Checkpoint::stand_anywhere(double end) {
    always(!attempt_.begun && !clock_, "ranks that are told twice of one checkpoint");
    attempt_.disturbed.clear();
    attempt_.begun = true;
    attempt_.standing = monotonic_s();
    ask(wire::Begin{attempt_.epoch, attempt_.outcome.generation, true});

    enter("freeze");
    until([&] { return tally_.answers().logs == job_.ranks(); }, end, "every thread to stand");
}

// Asks for what they share once all stand: until then one may take away what another has.
void Checkpoint::stand_to_save(double end) {
    stand_anywhere(end);
    ask(wire::AskLog{attempt_.epoch, true});
    until([&] { return tally_.answers().logs == job_.ranks(); }, end,
          "every rank to say what it shares with others");
}

void Checkpoint::renew_anywhere(const Request& request, double end) {
    stand_anywhere(end);
    enter("exchange");
    exchange_logs(job_, tally_, attempt_.epoch);
    renew(request, end);
}

// Every rank stands until all have a child that could go on.
void Checkpoint::renew(const Request& request, double end) {
    enter("renew");
    wire::Renew order = job_.next_world();
    order.epoch = attempt_.epoch;
    order.copies = request.copies.runs();
    ask(order);
    const auto& heard = tally_.answers();
    const double limit = request.timeout > 0 ? end : monotonic_s() + settings_.limits.save;
    until([&] { return give_up_on_save_error(), heard.saved == job_.ranks(); }, limit,
          "every rank to start its new libraries");
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
