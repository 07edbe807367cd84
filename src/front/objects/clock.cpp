#include "front/objects/clock.h"

#include "clock/clock.h"
#include "front/core/front.h"

namespace fermata::front {

constinit clock::Comm no_direct_clock{.pending = 1};

void clock_register(CommObject& comm) noexcept {
    Ranks members = clock_members(comm);
    clock::Comm* clock = front.clock->register_comm(static_cast<clock::Uid>(comm.uid), members.data(),
                                                    static_cast<int32_t>(members.size()));
    clock->owner = &comm;
    comm.clock = clock;
    comm.direct_clock = front.clock->policy().barrier_first ? &no_direct_clock : clock;
}

void clock_unregister(CommObject& comm) noexcept {
    front.clock->unregister_comm(comm.clock);
    comm.clock = nullptr;
    comm.direct_clock = &no_direct_clock;
}

}  // namespace fermata::front
