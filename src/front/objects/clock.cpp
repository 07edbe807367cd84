#include "front/objects/clock.h"

#include "clock/clock.h"
#include "front/core/bridge.h"
#include "front/core/front.h"

namespace fermata::front {

constinit clock::Comm no_direct_clock{.pending = 1};

Vec<clock::Rank> clock_numbers(const Members& members) noexcept {
    Vec<clock::Rank> numbers;
    numbers.reserve(members.size());
    for (Member member : members) numbers.push_back(static_cast<clock::Rank>(member.rank().number()));
    return numbers;
}

void clock_register(CommObject& comm) noexcept {
    Vec<clock::Rank> numbers = clock_numbers(clock_members(comm));
    clock::Comm* clock = front.clock->register_comm(static_cast<clock::Uid>(comm.uid), numbers.data(),
                                                    static_cast<int32_t>(numbers.size()));
    clock->owner = &comm;
    comm.clock = clock;
    const bool as_calls = front.clock->policy().barrier_first || bridge()->message_log != 0;
    comm.direct_clock = as_calls ? &no_direct_clock : clock;
}

void clock_unregister(CommObject& comm) noexcept {
    front.clock->unregister_comm(comm.clock);
    comm.clock = nullptr;
    comm.direct_clock = &no_direct_clock;
}

}  // namespace fermata::front
