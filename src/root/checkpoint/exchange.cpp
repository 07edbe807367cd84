#include "root/checkpoint/exchange.h"

#include "base/error.h"
#include "replay/wire_form.h"

namespace fermata::root {

void exchange_logs(Job& job, const tree::Tally& tally, uint32_t epoch) {
    replay::Exchange all(replay::Epoch{epoch});
    tally.each_log([&](int32_t number, const wire::Bytes& bytes) {
        const auto rank = Rank::among(number, job.ranks());
        auto said =
            replay::said_from({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}, job.ranks());
        if (!rank || !said || said->rank != *rank)
            fail("rank {}: what it says of its message log is damaged", number);
        all.add(std::move(*said));
    });
    for (const Job::Daemon& daemon : job.daemons()) {
        wire::LogOrders orders{epoch, daemon.ranks.runs(), {}};
        daemon.ranks.each([&](int32_t number) {
            const replay::Bytes form = replay::wire_form(all.orders_for(Rank(static_cast<uint32_t>(number))));
            auto* at = reinterpret_cast<const std::byte*>(form.data());
            orders.orders.emplace_back(at, at + form.size());
        });
        job.tell(daemon.id, orders);
    }
}

}  // namespace fermata::root
