#include "launch/own/placing.h"

#include <algorithm>

#include "base/error.h"

namespace fermata::launch::own {
namespace {

void check(const Wishes& wishes, uint32_t ranks, uint32_t slots) {
    bool given = std::any_of(wishes.hosts.begin(), wishes.hosts.end(), [](const Host& h) { return h.given; });
    if (!given || wishes.oversubscribe || ranks <= slots) return;
    throw Error(
        fmt::format("{} ranks are more than the {} slots of {} host{}: --oversubscribe, or more hosts", ranks,
                    slots, wishes.hosts.size(), wishes.hosts.size() == 1 ? "" : "s"),
        ExitCode::usage);
}

}  // namespace

uint32_t sum_of_slots(const std::vector<Host>& hosts) {
    uint64_t slots = 0;
    for (const Host& host : hosts) slots += host.slots;
    return static_cast<uint32_t>(std::min<uint64_t>(slots, Rank::kMost));
}

pmi::Placement place(const Wishes& wishes) {
    const uint32_t slots = sum_of_slots(wishes.hosts);
    const uint32_t nodes = static_cast<uint32_t>(wishes.hosts.size());
    const uint32_t ranks = wishes.ranks > 0      ? wishes.ranks
                           : wishes.per_node > 0 ? nodes * wishes.per_node
                                                 : slots;
    if (wishes.per_node > 0 && ranks > uint64_t{nodes} * wishes.per_node)
        throw Error(fmt::format("{} ranks do not fit on {} host{} with {} each", ranks, nodes,
                                nodes == 1 ? "" : "s", wishes.per_node),
                    ExitCode::usage);
    check(wishes, ranks, slots);
    pmi::Placement placement;
    std::vector<uint32_t> used(nodes);
    // In rounds: a second one begins only when every slot has its rank.
    for (uint32_t left = ranks, round = 1; left > 0;) {
        bool some = false;
        for (uint32_t node = 0; node < nodes && left > 0; ++node) {
            uint64_t room =
                wishes.per_node > 0 ? wishes.per_node : uint64_t{wishes.hosts[node].slots} * round;
            if (used[node] >= room) continue;
            auto here = static_cast<uint32_t>(std::min<uint64_t>(left, room - used[node]));
            if (wishes.by_node) here = 1;
            placement.add(node, here);
            used[node] += here;
            left -= here;
            some = true;
        }
        if (!some) ++round;
    }
    return placement;
}

}  // namespace fermata::launch::own
