// This file says in words what a rank waits for, for `fermata status`.
#include "clock/clock.h"
#include "clock/text.h"

namespace fermata::clock {

size_t RankClock::diagnosis(char* text, size_t size) {
    Locked guard(lock_);
    Text t(text, size);
    if (!is_pending()) return 0;
    t << "checkpoint " << uint64_t{cut_.epoch} << ": "
      << (cut_.frozen    ? "frozen"
          : cut_.known   ? "converging"
          : cut_.snapped ? "waiting for targets"
                         : "taking the snapshot")
      << ", version " << uint64_t{cut_.version} << "\n";
    for (const Comm& c : comms_) {
        Instance entered = c.entered.load(std::memory_order_acquire);
        if (cut_.known && entered < c.target)
            t << "must still begin collective " << c.target << " of communicator "
              << static_cast<uint64_t>(c.uid) << ", has begun " << entered << "\n";
        if (c.inside.load(std::memory_order_acquire) != 0)
            t << "inside collective " << entered << " of communicator " << static_cast<uint64_t>(c.uid)
              << "\n";
    }
    for (const Peer& peer : channel_targets_)
        if (uint64_t sent = sent_total(peer.rank); sent < peer.count)
            t << "must still send message " << peer.count << " to rank " << uint64_t(peer.rank)
              << ", has sent " << sent << "\n";
    for (const Peer& peer : demanded_)
        if (uint64_t got = received_total(peer.rank); got < peer.count)
            t << "has asked rank " << uint64_t(peer.rank) << " for message " << peer.count << ", has " << got
              << "\n";
    if (licence_.for_access)
        t << "has asked all who hold a lock to go on (one-sided call)\n";
    else if (licence_.out)
        t << "has asked all ranks to go on (wildcard or polling wait)\n";
    slots_.each([&t](const Slot& s) {
        auto thread = static_cast<uint64_t>(s.index);
        if (s.accesses != 0)
            t << "thread " << thread << " is in a one-sided call\n";
        else if (s.parked && s.gate_comm == nullptr)
            t << "thread " << thread << " is parked before a one-sided call\n";
        else if (s.parked)
            t << "thread " << thread << " is parked before collective " << s.gate_instance
              << " of communicator " << static_cast<uint64_t>(s.gate_comm->uid) << "\n";
        else if (s.held_at_exit)
            t << "thread " << thread << " is parked at the end of a collective\n";
    });
    return t.size();
}

}  // namespace fermata::clock
