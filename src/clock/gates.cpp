// Gates (step a and d of docs/collective-clock.md): which calls may begin while a checkpoint is being
// prepared. Collective calls, completions that are told, one-sided calls, and the published protocol's exits.
#include <algorithm>

#include "clock/clock.h"

namespace fermata::clock {

// ---- collective calls and completions

void RankClock::undo(Comm& c, Instance k, Gate kind) {
    if (kind == Gate::blocking || kind == Gate::start) {
        c.entered.store(k - 1, std::memory_order_release);
        c.obliged.store(c.obliged_ok, std::memory_order_release);
        c.inside.store(0, std::memory_order_release);
    } else {
        // Another thread's store may go with it; that thread is on its way to its own gate and stores again.
        c.told.store(c.told_ok, std::memory_order_release);
    }
}

void RankClock::approve(Comm& c, Slot& s, Instance k, Gate kind) {
    if (kind == Gate::blocking || kind == Gate::start) {
        c.inside.store(1, std::memory_order_relaxed);
        c.obliged_ok = k;
        c.obliged.store(k, std::memory_order_release);
        c.entered.store(k, std::memory_order_release);
    } else {
        c.told_ok = std::max(c.told_ok, k);
        note_told(c, k);
    }
    c.last_thread.store(s.index, std::memory_order_relaxed);
}

Verdict RankClock::gate_locked(Comm& c, Slot& s, Instance k, Gate kind, GateSite& site, bool& poke) {
    if (!is_pending()) {
        approve(c, s, k, kind);
        return Verdict::pass;
    }
    if (!site.undone) {
        if (!cut_.snapped) return Verdict::wait;  // the snapshot is about to count this call
        // Counted: obliged, must go in. (obliged or told >= k would not do: that can be another thread's
        // store which no gate has approved.)
        if (k <= c.snap) return Verdict::pass;
        undo(c, k, kind);
        site.undone = true;
        poke = true;  // this rank may have become safe by it
    }
    if (!cut_.frozen) {
        if (cut_.known) {
            bool in = k <= c.target;
            if (!in && (serves(s) || spend_round(s) || spend_grant(s))) {
                raise(c, k);
                gates_.passes++;
                poke = in = true;
            }
            if (in) {
                approve(c, s, k, kind);
                return Verdict::pass;
            }
        } else if (options_.fault_open_gate) {
            approve(c, s, k, kind);
            return Verdict::pass;
        }
    }
    return kind == Gate::try_tell ? Verdict::refuse : Verdict::wait;
}

Verdict RankClock::gate_step(Comm& c, Slot& s, Instance k, Gate kind, GateSite& site) {
    bool poke = false;
    Verdict verdict;
    {
        Locked guard(lock_);
        verdict = gate_locked(c, s, k, kind, site, poke);
        bool parks = verdict == Verdict::wait;
        gates_.park(s, parks);
        s.gate_comm = parks ? &c : nullptr;
        s.gate_instance = k;
    }
    if (poke) environment_.poke(environment_.self);
    return verdict;
}

void RankClock::nap_at_gate(uint32_t seen, Naps& naps) {
    environment_.pull(environment_.self);
    environment_.progress(environment_.self);
    environment_.nap(environment_.self, &bell_, seen, naps.next_us());
}

bool RankClock::gate(Comm& c, Slot& s, Instance k, Gate kind) {
    GateSite site;
    Naps naps(options_.nap_us);
    for (;;) {
        uint32_t seen = bell_.load(std::memory_order_acquire);
        Verdict verdict = gate_step(c, s, k, kind, site);
        if (verdict != Verdict::wait) return verdict == Verdict::pass;
        nap_at_gate(seen, naps);
    }
}

// ---- one-sided calls

// A thread without open epochs waits at the gate; otherwise new locks would be taken as fast as old ones are
// given back. A thread with open epochs goes on, unless this rank has said that it is safe: the root may have
// declared. Then the rank that waits for it asks with a licence, which is news, and until that licence is
// revoked no rank says that it is safe.
bool RankClock::may_access(Slot& s, bool holds) {
    if (!is_pending()) return true;
    if (cut_.frozen) return false;
    if (holds) return !cut_.reported_newest();
    return cut_.known && (serves(s) || spend_round(s) || spend_grant(s));
}

bool RankClock::access_step(Slot& s, bool holds) {
    Locked guard(lock_);
    bool pass = may_access(s, holds);
    __atomic_store_n(&s.accesses, pass ? 1 : 0, __ATOMIC_RELEASE);
    gates_.park(s, !pass);
    s.gate_comm = nullptr;
    return pass;
}

void RankClock::access_gate(Slot& s, bool holds) {
    bool told = false;
    Naps naps(options_.nap_us);
    for (;;) {
        uint32_t seen = bell_.load(std::memory_order_acquire);
        if (access_step(s, holds)) return;
        if (!told) environment_.poke(environment_.self);  // this rank may have become safe by it
        told = true;
        nap_at_gate(seen, naps);
    }
}

// The library cannot say whom the thread waits for, so all who hold something are asked to go on.
void RankClock::look_at_accesses(uint64_t now_ns) {
    accesses_.any = false;
    slots_.each([&](const Slot& s) FERMATA_LOCKS_UNSEEN {
        accesses_.any |= __atomic_load_n(&s.accesses, __ATOMIC_ACQUIRE) != 0;
    });
    if (!accesses_.any) {
        accesses_.since = 0;
        if (!licence_.for_access) return;
        licence_.for_access = false;
        if (licence_.out && licence_.sites == 0) revoke();
        return;
    }
    if (accesses_.since == 0) accesses_.since = moment(now_ns);
    if (licence_.for_access || !policy_.demands || !passed(now_ns, accesses_.since, options_.demand_delay_ns))
        return;
    licence_.for_access = licence_.out = true;
    licence(0);
}

// ---- the published protocol's exits

bool RankClock::may_leave(Slot& s) {
    if (!policy_.park_at_exit) return true;
    Locked guard(lock_);
    return !is_pending() || (!cut_.frozen && is_needy());
}

void RankClock::leave_pending(Comm& c, Slot& s) {
    environment_.poke(environment_.self);
    Naps naps(options_.nap_us);
    for (;;) {
        uint32_t seen = bell_.load(std::memory_order_acquire);
        s.held_at_exit = !may_leave(s);
        if (!s.held_at_exit) return;
        nap_at_gate(seen, naps);
    }
}

}  // namespace fermata::clock
