// The parts of a RankClock's state, each with what is always true of it. Under the clock's lock but where a
// member is atomic.
#pragma once

#include <atomic>
#include <cstdint>

#include "clock/arena.h"
#include "clock/comm.h"
#include "clock/types.h"

namespace fermata::clock {

// A moment by the clock. 0 stands for "never": a clock that reads 0 counts as 1.
inline uint64_t moment(uint64_t now_ns) { return now_ns ? now_ns : 1; }
// Has `delay` passed since? (Callers read the time before they take the lock: it may lie before `since`.)
inline bool passed(uint64_t now_ns, uint64_t since, uint64_t delay) {
    return now_ns >= since && now_ns - since >= delay;
}

// The slots of all threads. `used` of those below `end` are set; they are never taken away.
struct Slots {
    std::atomic<Slot*> at[kMaxSlots] = {};
    Slot* agent = nullptr;
    int32_t end = 0;   // one past the highest index in use
    int32_t used = 0;  // of application threads

    template <class F>
    void each(F&& f) const {
        for (int i = 0; i < end; i++)
            if (Slot* s = at[i].load(std::memory_order_relaxed)) f(*s);
    }
};

// Where the newest checkpoint attempt stands: intent, then snapped, then known, then frozen.
struct Cut {
    Epoch epoch = 0;   // of the newest INTENT
    Epoch closed = 0;  // messages of this epoch and older ones are ignored
    uint64_t era = 0;  // counts INTENTs, also over restarts (where epochs begin again)

    bool snapped = false;
    std::atomic<bool> known{false};  // targets have arrived
    std::atomic<bool> job_synchronous{false};
    bool frozen = false;
    Version version = 0;           // newest applied
    bool reported = false;         // SAFE sent ...
    Version reported_version = 0;  // ... at this version: never newer than `version`

    bool reported_newest() const { return reported && reported_version == version; }
    void clear() {  // but for what lasts longer than an attempt
        snapped = known = job_synchronous = frozen = reported = false;
        version = reported_version = 0;
    }
};

// A message that another rank waits for: number `count` on the way between the two.
struct Peer {
    Rank rank;
    uint64_t count;
    uint32_t times;  // how often it has grown in this epoch
    Labels wanted;   // of the message number `count`
};

class Peers {
  public:
    const Peer* begin() const { return all_.begin(); }
    const Peer* end() const { return all_.end(); }
    // The peer of the rank, made when it is asked for the first time.
    Peer& of(Arena& arena, Rank rank) {
        for (Peer& peer : all_)
            if (peer.rank == rank) return peer;
        all_.push(arena, Peer{rank, 0, 0, 0});
        return *(all_.end() - 1);
    }
    void clear() { all_.clear(); }

  private:
    Array<Peer> all_;
};

// The ranks that have asked this one for licences in this epoch. `active` of them have one out now.
struct Licensors {
    struct Licensor {
        Rank rank;
        uint32_t credit;  // of the newest licence
        bool active;
    };
    Array<Licensor> all;
    uint32_t active = 0;

    Licensor& of(Arena& arena, Rank rank) {
        for (Licensor& licensor : all)
            if (licensor.rank == rank) return licensor;
        all.push(arena, Licensor{rank, 0, false});
        return *(all.end() - 1);
    }
    void clear() {
        all.clear();
        active = 0;
    }
};

// The licences that this rank has asked all others for. While it is out, some wait asked for it, or a
// one-sided call does.
struct OwnLicence {
    uint32_t credit = 0;      // number of own licences in this epoch
    bool out = false;         // not revoked yet
    int32_t sites = 0;        // waits of this rank that asked for it
    bool for_access = false;  // holders of locks were asked to go on, for the sake of a one-sided call
};

// One-sided calls, as the agent last looked.
struct Accesses {
    bool any = false;    // some thread is in one
    uint64_t since = 0;  // ns; 0 = none is
};

// Threads at gates.
struct Gates {
    uint32_t parked = 0;  // as many slots say that they are
    uint64_t passes = 0;  // gates passed beyond the targets

    void park(Slot& s, bool parks) {
        if (parks != (s.parked != 0)) parks ? parked++ : parked--;
        s.parked = parks;
    }
};

// The stall rule: what is owed does not move.
struct Stall {
    uint64_t rounds = 0;  // since the process began; Slot::rounds_used is never larger
    uint64_t times = 0;   // rounds of this epoch
    uint64_t stamp = 0;   // of what was owed when it last moved ...
    uint64_t since = 0;   // ... which was then; 0 = nothing is owed
};

}  // namespace fermata::clock
