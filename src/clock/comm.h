// Types that the wrappers hold of the clock: a communicator, a thread, a wait. The words of clock.h's calls.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "clock/arena.h"
#include "clock/types.h"

namespace fermata::clock {

inline constexpr int kMaxSlots = 1024;  // split::kMaxThreads
inline constexpr int kNoThread = -1;

// One communicator as the clock sees it. The first line is written by application threads without a lock (MPI
// allows one collective caller per communicator at a time), everything else under the clock's lock.
struct alignas(64) Comm {
    // Store order of enter(): inside, obliged, entered. Whoever sees `entered` sees the other two.
    std::atomic<uint64_t> entered{0};  // collective calls begun here: blocking entered, non-blocking started
    std::atomic<uint64_t> obliged{0};  // highest instance whose *call* obliges: blocking, or not re-issuable
    std::atomic<uint64_t> told{0};     // highest non-blocking instance whose completion the application knows
    std::atomic<uint32_t> inside{0};   // a thread is inside a blocking collective
    std::atomic<int32_t> last_thread{kNoThread};
    std::atomic<uint32_t> pending{0};  // as RankClock::pending(), beside what a call writes
    void* owner = nullptr;             // the caller's own
    uint64_t spare[2]{};

    Uid uid{};
    int32_t size = 0;          // members, both sides of an inter-communicator
    bool has_members = false;  // `members` is set: a peer may not know the uid yet (see register_group_call)
    bool stub = false;         // made from a peer's message; nobody here has registered it yet
    Array<Rank> members{};
    Instance snap = 0;        // max(obliged, told) at the snapshot of this epoch
    Instance obliged_ok = 0;  // values that a gate or the snapshot has approved; the plain ones above may run
    Instance told_ok = 0;     //   ahead by calls that are about to be held at the gate
    Instance target = 0;      // T: instances up to here must be begun by every member
    Instance raised = 0;      // highest RAISE sent in this epoch
    Comm* next_hash = nullptr;
    Comm* next = nullptr;  // all communicators, for the agent
    Comm* previous = nullptr;
};
static_assert(offsetof(Comm, uid) == 64);

// One blocked wait of one thread; lives on its stack.
struct WaitSite {
    uint64_t since = 0;  // when it was first seen blocked and needed, in this epoch
    uint64_t asked = 0;  // when waiting() last said yes
    uint64_t licensed_at = 0;
    uint64_t era = 0;
    bool licensed = false;
};

// One per application thread (index of its split::ThreadRecord), and one for the agent. Counters are written
// by the owner only; the agent reads them.
struct alignas(64) Slot {
    uint64_t* sent;      // by world rank: messages handed to MPI, counted before the call
    uint64_t* received;  // by world rank: matched by the application, or pulled
    Labels* labels;      // by world rank: of the messages sent there; kept with THREAD_MULTIPLE only
    int32_t index;
    // Under the clock's lock:
    uint32_t parked;    // waits in a gate now
    bool held_at_exit;  // waits at the end of a collective (park_at_exit only)
    bool waits;  // is blocked inside MPI for something that another rank must do: it asks for that itself
    const Comm* gate_comm;  // ... for this instance, for diagnosis
    Instance gate_instance;
    uint64_t grants;  // gates it may pass for licences of others
    uint64_t rounds_used;
    // Licences asked for in this epoch, also over several waits: they grow rarer, else a loop that polls once
    // a round would let unneeded ranks run ahead of it for ever.
    uint64_t licences;
    uint64_t licence_era;
    WaitSite poll_site;
    // In a one-sided call, which may wait for others inside the library. Written by the owner, read by the
    // agent.
    uint32_t accesses;

    void sent_to(Rank x) { bump(sent[x]); }
    void labelled(Rank x, Labels label) {
        Labels known = __atomic_load_n(&labels[x], __ATOMIC_RELAXED);
        if ((known & label) != label) __atomic_store_n(&labels[x], known | label, __ATOMIC_RELAXED);
    }
    void received_from(Rank x) { bump(received[x]); }
    // Counters handed out twice (a message pulled by one thread and matched by another counts once: at the
    // pull).
    static void bump(uint64_t& counter) {
        asm("incq %0" : "+m"(counter));  // one instruction, without the bus lock: the agent reads only
    }
};

// One stay at a gate; lives on the caller's stack. Only for callers of gate_step (tests, simulators).
struct GateSite {
    bool undone = false;
};

enum class Gate {
    blocking,  // a blocking collective, about to be entered
    start,  // a non-blocking one that cannot be issued again (in-place reductions, Comm_idup, collective I/O)
    tell,   // its completion is about to be told, the caller can wait
    try_tell,  // ... the caller cannot wait
};
enum class Verdict {
    pass,
    wait,    // ask again after a nap (try_tell gets it only in the microseconds of a snapshot)
    refuse,  // try_tell: do not tell
};

}  // namespace fermata::clock
