// The rank side of the collective clock: which collective calls may begin while a checkpoint is being
// prepared.
//
// A pure state machine: calls in, verdicts and messages out. No MPI, no I/O, no thread of its own, no libc
// malloc, no TLS, no exceptions: it is called by application threads (upper thread pointer) and by the agent
// (lower thread pointer). All state lives in memory of the ChunkSource, hence in the image.
// docs/collective-clock.md explains the protocol (CC-D); its steps are numbered there and in the comments
// here. The callers: collectives (front/requests/collective.h), waits (front/requests/waiter.cpp), counts of
// messages (Slot in comm.h), and for the agent, which knows nothing of this room,
// front/services/services.cpp.
//
// How a wrapper uses it (S = this thread's Slot, C = the communicator's clock::Comm):
//
// clang-format off
//   blocking collective      clock.enter(C, S);  real call;  clock.leave(C, S);
//   ... that creates a comm  clock.enter(C, S);  real call, agree uid;  N = clock.register_comm(...);
//                            clock.leave(C, S);
//   non-blocking start       k = clock.start(C, S, reissuable);  real call;  keep (C, k) in the request
//   non-blocking completed   Wait: clock.tell(C, S, k)   Test: if (!clock.try_tell(C, S, k)) say "not yet"
//                            (after the lower half said complete, before the application hears of it)
//   one-sided call           clock.enter_access(S, holds);  real call;  clock.leave_access(S);
//   send                     S.sent_to(x) before the real call; with MPI_THREAD_MULTIPLE also S.labelled(x, label)
//   receive matched, pulled  S.received_from(x)
//   any blocked wait         WaitSite site;
//                            loop { ...; if (clock.pending()) { pull everything that arrived;
//                                if (clock.waiting(S, site, now)) <say what is waited for: clock.need_*> } }
//                            clock.waited(S, site);
//   failing Test, Iprobe     if (clock.pending() && clock.polling(S, now)) <say what was asked for: clock.need_*>
//   succeeding Test, Iprobe  clock.polled(S)
//   2pc only                 if (clock.policy().barrier_first) { Ibarrier via start/tell } before enter
// clang-format on
//
// enter, start (not reissuable), tell and leave may block inside (they loop over Environment::pull, progress
// and nap): hold no lock, and re-read everything that a restart may change afterwards.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/lock.h"
#include "base/naps.h"
#include "clock/arena.h"
#include "clock/comm.h"
#include "clock/comms.h"
#include "clock/messages.h"
#include "clock/outbox.h"
#include "clock/policy.h"
#include "clock/rank_state.h"
#include "clock/types.h"

namespace fermata::clock {

// Functions that the clock needs from its surroundings. All pointers must be set. Called without the clock's
// lock.
struct Environment {
    void* self;
    // Receive every message that has arrived (Improbe(ANY, ANY) on every communicator) into the queue, so
    // that sends to this waiting rank complete. Application threads only.
    void (*pull)(void* self);
    // Let the MPI library make progress (an Iprobe will do). Application threads only.
    void (*progress)(void* self);
    // Offer a stop point, then sleep until *bell != seen or `us` microseconds have passed (futex_nap in
    // base/lock.h does the second half). Application threads only. A restart may happen inside.
    void (*nap)(void* self, std::atomic<uint32_t>* bell, uint32_t seen, uint32_t us);
    // Wake the agent: it should look at outbox() and call poll() soon. Any context.
    void (*poke)(void* self);
    // When this returns, every store that any application thread made before it saw pending() == false is
    // visible here, and every thread sees pending() from now on: membarrier(PRIVATE_EXPEDITED), see
    // process_fence() below. Agent only.
    void (*fence)(void* self);
};

// The usual Environment::fence: registers on first use (also after a restart). False when the kernel has no
// membarrier (< 4.14, or a seccomp filter): checkpoints would be unsafe, refuse them.
bool process_fence();

struct Options {
    Rank me = 0;
    Rank world = 1;
    Protocol protocol = Protocol::cc_d;
    // A blocked thread that others wait for asks for its message only after this long: most messages are on
    // their way. About ten times a broadcast through the tree.
    uint64_t demand_delay_ns = 2'000'000;
    // THREAD_MULTIPLE: when the unmet targets of this rank have not moved for this long, every parked thread
    // may pass one gate, because which thread serves a target is a guess. Grows with each such round.
    uint64_t stall_ns = 20'000'000;
    uint32_t nap_us = 200;  // the first one of a wait (base/naps.h)
    // Deliberate faults, so that the tests can prove they would notice. Never set elsewhere.
    bool fault_open_gate = false;  // a gate stays open between the report and the targets
};

struct Totals {
    uint64_t sent, received;
};

class RankClock {
  public:
    // Made once per process in the upper half, never destroyed. `environment` is copied.
    static RankClock* create(const Options& options, const Environment& environment, ChunkSource memory);
    RankClock(const RankClock&) = delete;
    RankClock& operator=(const RankClock&) = delete;

    // ---- application threads ----------------------------------------------------------------------------

    // A checkpoint is being prepared. One load.
    bool pending() const { return __builtin_expect(pending_.load(std::memory_order_relaxed) != 0, 0); }
    const Policy& policy() const { return policy_; }
    // From MPI_Init_thread, if MPI calls of several threads may overlap; before the first of them does.
    void set_thread_multiple(bool on) { thread_multiple_ = on; }
    // Before this rank's first send in synchronous mode. Whoever sees pending() == false afterwards is in the
    // snapshot of every later checkpoint.
    void note_synchronous_sends() {
        synchronous_.store(1, std::memory_order_release);
        std::atomic_signal_fence(std::memory_order_seq_cst);
    }
    // Has any rank of the job sent in synchronous mode? Meaningful once known(). Then a sender must not see
    // its message received before the program receives it.
    bool job_sends_synchronously() const FERMATA_LOCKS_UNSEEN { return cut_.job_synchronous; }

    // Slot of the thread with this record index; made at its first use.
    Slot& slot(int index) {
        Slot* known = slots_.at[index].load(std::memory_order_acquire);
        return __builtin_expect(known != nullptr, 1) ? *known : new_slot(index);
    }
    Slot& agent_slot() { return *slots_.agent; }

    // A communicator becomes usable. Call it while still inside the collective that creates it (WORLD and
    // SELF: in MPI_Init), so that no safe state falls between. `members` are world ranks; only their number
    // is kept. Thread-safe, as everything below.
    Comm* register_comm(Uid uid, const Rank* members, int32_t count);
    // A collective call on something that is no communicator and that its other participants may not know of:
    // MPI_Comm_create_group (uid = pseudo_uid(parent, hash of the group, tag)), the leaders of
    // MPI_Intercomm_create. The first use registers, later ones find it. Never unregister it.
    Comm* register_group_call(Uid uid, const Rank* members, int32_t count);
    // After MPI_Comm_free/disconnect: its wrapper did enter(), a real barrier on the communicator, the real
    // free, leave(), and no non-blocking instance of it is open. The pointer is invalid afterwards.
    void unregister_comm(Comm* comm);
    Comm* find(Uid uid);

    // Begins a blocking collective; blocks while it must not begin. Its instance number.
    __attribute__((always_inline)) Instance enter(Comm& c, Slot& s) {
        Instance k = mark_entered(c, s.index);
        if (__builtin_expect(c.pending.load(std::memory_order_relaxed) != 0, 0)) wait_at_gate(c, s, k);
        return k;
    }
    // True when the thread may have waited.
    __attribute__((always_inline)) bool leave(Comm& c, Slot& s) {
        mark_left(c);
        if (__builtin_expect(c.pending.load(std::memory_order_relaxed) == 0, 1)) return false;
        leave_pending(c, s);
        return true;
    }
    // The same in steps, for a wrapper that keeps the rare ones out of its way: mark_entered(), and if
    // the communicator is pending wait_at_gate(); mark_left(), and if it is leave_pending().
    __attribute__((always_inline)) static Instance mark_entered(Comm& c, int32_t thread) {
        c.last_thread.store(thread, std::memory_order_relaxed);
        c.inside.store(1, std::memory_order_relaxed);
        Instance k = c.entered.load(std::memory_order_relaxed) + 1;
        c.obliged.store(k, std::memory_order_release);
        c.entered.store(k, std::memory_order_release);
        // Pairs with Environment::fence in the agent: either it counts this call, or we see its flag.
        std::atomic_signal_fence(std::memory_order_seq_cst);
        return k;
    }
    void wait_at_gate(Comm& c, Slot& s, Instance k) { gate(c, s, k, Gate::blocking); }
    static void mark_left(Comm& c) {
        c.inside.store(0, std::memory_order_release);
        std::atomic_signal_fence(std::memory_order_seq_cst);
    }
    void leave_pending(Comm& c, Slot& s);

    // A one-sided call, which the library may hold up until another rank gives a lock back: while a thread is
    // in one, this rank is not safe. `holds`: this rank has epochs open, so others may wait for what it does
    // next; it goes on until it has said that it is safe. A thread that holds nothing waits at the gate and
    // begins no epoch.
    void enter_access(Slot& s, bool holds) {
        __atomic_store_n(&s.accesses, 1, __ATOMIC_RELAXED);
        // Pairs with Environment::fence in the agent: either it sees this call, or we see its flag.
        std::atomic_signal_fence(std::memory_order_seq_cst);
        if (pending()) access_gate(s, holds);
    }
    void leave_access(Slot& s) {
        __atomic_store_n(&s.accesses, 0, __ATOMIC_RELEASE);
        if (pending()) environment_.poke(environment_.self);
    }

    // Begins a non-blocking collective. Its instance number, to be kept with the request. Blocks only if it
    // is not re-issuable. No stop point may lie between this and the real call.
    Instance start(Comm& c, Slot& s, bool reissuable = true) {
        bool obliges = !reissuable || policy_.count_at_start;
        Instance k = mark_started(c, s, obliges);
        if (__builtin_expect(obliges, 0)) {
            if (pending()) gate(c, s, k, Gate::start);
            mark_left(c);  // not leave(): the published rules would park here, before the real call
            if (pending()) environment_.poke(environment_.self);
        }
        return k;
    }
    // The lower half says instance k is complete; may the application hear it? tell() waits until it may.
    void tell(Comm& c, Slot& s, Instance k) {
        note_told(c, k);
        if (pending()) gate(c, s, k, Gate::tell);
    }
    // tell() for the usual case; false: nothing was decided, ask tell() or try_tell().
    bool tell_now(Comm& c, Instance k) {
        if (pending()) return false;
        note_told(c, k);
        return !pending();
    }
    bool try_tell(Comm& c, Slot& s, Instance k) {
        note_told(c, k);
        return !pending() || gate(c, s, k, Gate::try_tell);
    }

    // The thread is blocked in a wait. True when it is needed elsewhere and has been blocked long enough:
    // then say what it waits for, with one or more of the need_* calls (all that are still open; for a wait
    // that any one of several things ends, need_anything). `now_ns` is CLOCK_MONOTONIC, as in poll().
    bool waiting(Slot& s, WaitSite& site, uint64_t now_ns) { return blocked(s, site, now_ns, true); }
    void need_message(Slot& s, Rank source, Labels wanted);  // one more message from this world rank
    void need_collective(Slot& s, Comm& c, Instance k);      // the other members must start k
    void need_anything(Slot& s, WaitSite& site);             // wildcard, Waitany: any rank may be the one
    void waited(Slot& s, WaitSite& site) {                   // the wait is over
        if (__builtin_expect(site.era != 0, 0)) waited_slow(s, site);
    }
    // The application polls: Test, Testany, Iprobe, Improbe said no (the wrapper has pulled before it
    // answered). As waiting(): when true, say need_collective if nothing but collectives was asked for
    // (whoever has started one needs it), else need_anything(s, s.poll_site): a message may have been asked
    // for that never comes.
    bool polling(Slot& s, uint64_t now_ns) { return blocked(s, s.poll_site, now_ns, false); }
    void polled(Slot& s) {  // ... said yes
        if (__builtin_expect(s.poll_site.era != 0, 0)) waited_slow(s, s.poll_site);
    }

    // ---- the agent (lower thread pointer; one caller) -----------------------------------------------------

    // One message from the tree (docs/formats/clock-messages.md). False: not understood, one line in `why`
    // (a static string).
    bool inbox(const void* bytes, size_t size, const char** why = nullptr);
    // Copies the next message for the tree, at most kMaxMessage bytes, and returns its size; 0 = none.
    size_t outbox(void* bytes, size_t capacity);
    // Looks whether this rank is safe at the newest version, and after stalls. Every few hundred microseconds
    // while pending(), and after each poke.
    void poll(uint64_t now_ns);
    // The root has declared the safe state: no gate opens for anything new until resume() or restart().
    void freeze();
    // The checkpoint is over, committed or given up: gates open, hidden completions may be told.
    void resume();
    // The same on a fresh lower half under a fresh root, whose epochs begin again.
    void restart();

    // The agent alone changes what these two read.
    Epoch epoch() const FERMATA_LOCKS_UNSEEN { return cut_.epoch; }
    bool frozen() const FERMATA_LOCKS_UNSEEN { return cut_.frozen; }
    // Valid from freeze() until resume() or restart(): instances up to this one must be complete at the end
    // of the drain; non-blocking ones above it are issued again, in order, at restart.
    Instance target(const Comm& c) const { return c.target; }
    // Point-to-point messages since the job began; all threads and the agent.
    Totals totals() const;
    // Writes the reasons why this rank waits, one line each; never more than `size` bytes, not terminated.
    // For `fermata status`.
    size_t diagnosis(char* text, size_t size);

    // ---- for tests and simulators: one step of a gate instead of the loop ---------------------------------

    Verdict gate_step(Comm& c, Slot& s, Instance k, Gate kind, GateSite& site);
    // The parts of start and tell before the gate.
    Instance mark_started(Comm& c, Slot& s, bool obliges) {
        if (obliges)
            return mark_entered(c, s.index);  // must be through its gate before this rank can be safe
        Instance k = c.entered.load(std::memory_order_relaxed) + 1;
        c.entered.store(k, std::memory_order_release);
        c.last_thread.store(s.index, std::memory_order_relaxed);
        return k;
    }
    void note_told(Comm& c, Instance k) {
        // Several threads may complete different instances at once: a plain store could lose the larger one.
        Instance seen = c.told.load(std::memory_order_relaxed);
        if (!thread_multiple_) {  // a locked instruction costs more than all the rest of the fast path
            if (k > seen) c.told.store(k, std::memory_order_release);
        } else {
            while (k > seen && !c.told.compare_exchange_weak(seen, k, std::memory_order_release)) {
            }
        }
        std::atomic_signal_fence(std::memory_order_seq_cst);
    }
    bool may_leave(Slot& s);  // park_at_exit only
    bool access_step(Slot& s, bool holds);
    bool known() const FERMATA_LOCKS_UNSEEN { return cut_.known; }
    bool needy();
    Version version() const FERMATA_LOCKS_UNSEEN { return cut_.version; }

  private:
    friend class Arena;

    RankClock(const Options& options, const Environment& environment, ChunkSource memory);

    Slot& new_slot(int index);
    bool gate(Comm& c, Slot& s, Instance k, Gate kind);
    void access_gate(Slot& s, bool holds);
    void nap_at_gate(uint32_t seen, Naps& naps);
    void waited_slow(Slot& s, WaitSite& site);
    bool blocked(Slot& s, WaitSite& site, uint64_t now_ns, bool in_wait);

    // The rest is called under the lock.
    bool is_pending() const FERMATA_WANTS(lock_) { return pending_.load(std::memory_order_relaxed) != 0; }
    // Gates and waits of several threads: only then there are guesses about which one is meant.
    bool several_threads() const FERMATA_WANTS(lock_) { return thread_multiple_ && slots_.used > 1; }

    Slot* make_slot(int index) FERMATA_WANTS(lock_);
    Comm* insert(Uid uid, int32_t size) FERMATA_WANTS(lock_);

    // gates.cpp
    Verdict gate_locked(Comm& c, Slot& s, Instance k, Gate kind, GateSite& site, bool& poke)
        FERMATA_WANTS(lock_);
    void undo(Comm& c, Instance k, Gate kind) FERMATA_WANTS(lock_);
    void approve(Comm& c, Slot& s, Instance k, Gate kind) FERMATA_WANTS(lock_);
    bool may_access(Slot& s, bool holds) FERMATA_WANTS(lock_);
    void look_at_accesses(uint64_t now_ns) FERMATA_WANTS(lock_);

    // needs.cpp
    bool is_needy() const FERMATA_WANTS(lock_);
    bool serves(const Slot& s) const FERMATA_WANTS(lock_);
    bool answers(const Slot& s, const Peer& peer) const FERMATA_WANTS(lock_);
    bool may_act(const Slot& s) const FERMATA_WANTS(lock_);
    bool act(Slot& s) FERMATA_WANTS(lock_);  // may_act, and pays for it
    bool has_round(const Slot& s) const FERMATA_WANTS(lock_);
    bool spend_round(Slot& s) FERMATA_WANTS(lock_);
    bool spend_grant(Slot& s) FERMATA_WANTS(lock_);
    uint64_t passes_for(const Slot& s, Rank licensor, uint32_t draw) const FERMATA_WANTS(lock_);
    void apply_licence(Rank from, uint32_t credit) FERMATA_WANTS(lock_);
    void apply_revoke(Rank from) FERMATA_WANTS(lock_);
    void drop_grants() FERMATA_WANTS(lock_);
    bool in_mpi(int32_t index) const FERMATA_WANTS(lock_);
    void look_for_stall(uint64_t now_ns) FERMATA_WANTS(lock_);
    uint64_t sent_total(Rank x) const;
    uint64_t received_total(Rank x) const;

    // rank_messages.cpp
    const char* hear(const Header& h, Reader& r) FERMATA_WANTS(lock_);
    const char* hear_targets(Reader& r) FERMATA_WANTS(lock_);
    const char* hear_news(Reader& r) FERMATA_WANTS(lock_);
    const char* hear_item(Reader& r) FERMATA_WANTS(lock_);
    void hear_channel(Rank to, uint64_t count, Labels wanted) FERMATA_WANTS(lock_);
    const char* broken() const FERMATA_WANTS(lock_);
    void snapshot() FERMATA_WANTS(lock_);
    void apply(const Entry& entry) FERMATA_WANTS(lock_);
    void put_entry(Writer& w, Entry e, const Comm& c, uint32_t* run_index) FERMATA_WANTS(lock_);
    void raise(Comm& c, Instance k) FERMATA_WANTS(lock_);
    void licence(uint32_t credit) FERMATA_WANTS(lock_);
    void revoke() FERMATA_WANTS(lock_);
    void queue(const Writer& message) FERMATA_WANTS(lock_) { outbox_.put(arena_, message); }

    void set_pending(uint32_t value) FERMATA_WANTS(lock_);
    void clear_epoch() FERMATA_WANTS(lock_);
    void ring() FERMATA_WANTS(lock_);

    // Members that calls read come first.
    std::atomic<uint32_t> pending_{0};  // and in each communicator: set_pending()
    Policy policy_;
    bool thread_multiple_ = false;
    std::atomic<uint32_t> synchronous_{0};
    Slots slots_;

    Lock lock_;
    std::atomic<uint32_t> bell_{0};  // changes whenever a parked thread should look again
    Options options_;
    Environment environment_;
    Arena arena_;
    Comms comms_;

    Cut cut_ FERMATA_GUARDED_BY(lock_);
    Targets targets_ FERMATA_GUARDED_BY(lock_);        // of uids that nobody has registered here (yet)
    Peers channel_targets_ FERMATA_GUARDED_BY(lock_);  // TC: messages that peers demand from here
    Peers demanded_ FERMATA_GUARDED_BY(lock_);         // dem: what this rank has demanded
    Licensors licensors_ FERMATA_GUARDED_BY(lock_);    // who has asked this rank for licences
    OwnLicence licence_ FERMATA_GUARDED_BY(lock_);     // what this rank has asked others for
    Accesses accesses_ FERMATA_GUARDED_BY(lock_);
    Gates gates_ FERMATA_GUARDED_BY(lock_);
    Stall stall_ FERMATA_GUARDED_BY(lock_);

    Outbox outbox_ FERMATA_GUARDED_BY(lock_);
    uint8_t scratch_[kMaxMessage] FERMATA_GUARDED_BY(lock_);  // one message in the making
};

// The uid of a group call: the same in all participants, in a number space apart from those of communicators
// (whose top bit must be 0).
Uid pseudo_uid(Uid parent, uint64_t group_hash, int32_t tag);

}  // namespace fermata::clock
