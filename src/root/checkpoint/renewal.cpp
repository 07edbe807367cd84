// A renewal: the ranks come to a safe state as for a checkpoint, and go on with new lower halves. In place of
// save and commit. With a message log no safe state is needed.
#include "base/clock.h"
#include "base/invariant.h"
#include "replay/wire_form.h"
#include "root/checkpoint/checkpoint.h"

namespace fermata::root {

// Ranks that keep a message log stand wherever they are, and nothing is drained: what was on its way comes
// out of the logs again.
void Checkpoint::renew_anywhere(const Request& request, double end) {
    always(!attempt_.begun && !clock_, "ranks that are told twice of one renewal");
    attempt_.disturbed.clear();
    attempt_.begun = true;
    attempt_.standing = monotonic_s();
    ask(wire::Begin{attempt_.epoch, {}, true});

    enter("freeze");
    until([&] { return tally_.answers().logs == job_.ranks(); }, end, "every thread to stand");

    enter("exchange");
    exchange();
    renew(request, end);
}

// Puts together what all message logs say, and tells each rank what that means for it.
void Checkpoint::exchange() {
    replay::Exchange all(replay::Epoch{attempt_.epoch});
    tally_.each_log([&](int32_t number, const wire::Bytes& bytes) {
        const auto rank = Rank::among(number, job_.ranks());
        auto said =
            replay::said_from({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}, job_.ranks());
        if (!rank || !said || said->rank != *rank)
            throw Abandoned{fmt::format("rank {}: what it says of its message log is damaged", number)};
        all.add(std::move(*said));
    });
    for (const Job::Daemon& daemon : job_.daemons()) {
        wire::LogOrders orders{attempt_.epoch, daemon.ranks.runs(), {}};
        daemon.ranks.each([&](int32_t number) {
            const replay::Bytes form = replay::wire_form(all.orders_for(Rank(static_cast<uint32_t>(number))));
            auto* at = reinterpret_cast<const std::byte*>(form.data());
            orders.orders.emplace_back(at, at + form.size());
        });
        job_.tell(daemon.id, orders);
    }
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
