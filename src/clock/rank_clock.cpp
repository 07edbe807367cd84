// A RankClock's life: how it is made, who registers with it, and how an attempt at a checkpoint begins, is
// looked after and ends. Step names follow docs/collective-clock.md; the other files hold one idea each:
// gates.cpp, waits.cpp, needs.cpp, rank_messages.cpp, diagnosis.cpp.
#include <linux/membarrier.h>

#include <algorithm>

#include "base/sys.h"
#include "clock/clock.h"
#include "clock/hash.h"
#include "clock/messages.h"

namespace fermata::clock {

bool process_fence() {
    auto call = [](long command) { return sys(SYS_membarrier, command); };
    if (call(MEMBARRIER_CMD_PRIVATE_EXPEDITED) == 0) return true;
    // -EPERM: this process (after a restart: this new process) has not registered yet.
    if (call(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0 && call(MEMBARRIER_CMD_PRIVATE_EXPEDITED) == 0)
        return true;
    return call(MEMBARRIER_CMD_GLOBAL) == 0;
}

Uid pseudo_uid(Uid parent, uint64_t group_hash, int32_t tag) {
    uint64_t x = hash_of(parent) * kSpread1 + group_hash;
    x = (x ^ (x >> 33)) * kSpread2 + static_cast<uint32_t>(tag);
    x = (x ^ (x >> 29)) * kSpread3;
    return static_cast<Uid>((x ^ (x >> 32)) | (uint64_t{1} << 63));
}

bool protocol_from_name(const char* name, Protocol* protocol) {
    for (Protocol p : {Protocol::cc_d, Protocol::cc, Protocol::two_pc})
        if (__builtin_strcmp(name, policy_of(p).name) == 0) {
            *protocol = p;
            return true;
        }
    return false;
}

// ---- making things

RankClock* RankClock::create(const Options& options, const Environment& environment, ChunkSource memory) {
    void* place = memory.chunk(memory.self, sizeof(RankClock));
    return new (place) RankClock(options, environment, memory);
}

RankClock::RankClock(const Options& options, const Environment& environment, ChunkSource memory)
    : policy_(policy_of(options.protocol)),
      options_(options),
      environment_(environment),
      arena_(memory),
      comms_(arena_) {
    slots_.agent = make_slot(kNoThread);
}

Slot* RankClock::make_slot(int index) {
    Slot* s = arena_.make<Slot>();
    size_t bytes = static_cast<size_t>(options_.world) * sizeof(uint64_t);
    s->sent = static_cast<uint64_t*>(arena_.take(bytes));
    s->received = static_cast<uint64_t*>(arena_.take(bytes));
    s->labels = static_cast<Labels*>(arena_.take(bytes));
    s->index = index;
    s->rounds_used = stall_.rounds;
    return s;
}

Slot& RankClock::new_slot(int index) {
    Locked guard(lock_);
    Slot* s = slots_.at[index].load(std::memory_order_relaxed);
    if (!s) {
        s = make_slot(index);
        slots_.end = std::max(slots_.end, index + 1);
        slots_.used++;
        slots_.at[index].store(s, std::memory_order_release);
    }
    return *s;
}

Comm* RankClock::insert(Uid uid, int32_t size) {
    if (Comm* known = comms_.find(uid)) {
        known->stub = false;
        known->size = size;
        return known;
    }
    Comm* c = comms_.add(arena_, uid, size);
    c->pending.store(pending_.load(std::memory_order_relaxed), std::memory_order_relaxed);
    // Peers may have used it, and said so, before it was known here.
    c->target = targets_.find(uid);
    return c;
}

Comm* RankClock::register_comm(Uid uid, const Rank* members, int32_t count) {
    Locked guard(lock_);
    return insert(uid, count);
}

Comm* RankClock::register_group_call(Uid uid, const Rank* members, int32_t count) {
    Locked guard(lock_);
    Comm* c = insert(uid, count);
    if (c->has_members) return c;
    c->members.clear();
    for (int32_t i = 0; i < count; i++) c->members.push(arena_, members[i]);
    std::sort(c->members.begin(), c->members.end());  // the same list in all participants
    c->has_members = true;
    return c;
}

void RankClock::unregister_comm(Comm* comm) {
    Locked guard(lock_);
    comms_.take_out(arena_, comm);
    ring();
}

Comm* RankClock::find(Uid uid) {
    Locked guard(lock_);
    return comms_.find(uid);
}

Totals RankClock::totals() const {
    Totals totals{0, 0};
    for (Rank x = 0; x < options_.world; x++) {
        totals.sent += sent_total(x);
        totals.received += received_total(x);
    }
    return totals;
}

bool RankClock::needy() {
    Locked guard(lock_);
    return is_needy();
}

// ---- an attempt at a checkpoint

// Safe or not (step f).
void RankClock::poll(uint64_t now_ns) {
    Locked guard(lock_);
    if (!is_pending() || !cut_.known || cut_.frozen) return;
    look_at_accesses(now_ns);
    if (is_needy()) {
        look_for_stall(now_ns);
        return;
    }
    stall_.since = 0;
    if (licence_.out && !licence_.for_access) revoke();
    // Others wait for what this rank may still do (may_access); when they do not any more, that is news.
    if (accesses_.any || licensors_.active != 0) return;
    for (const Comm& c : comms_)  // after is_needy(): whoever saw `entered` sees `inside`
        if (c.inside.load(std::memory_order_acquire) != 0) return;
    if (cut_.reported_newest()) return;
    cut_.reported = true;
    cut_.reported_version = cut_.version;
    Writer w(scratch_, sizeof scratch_);
    w.header(Kind::safe, cut_.epoch).u32(cut_.version);
    queue(w);
}

void RankClock::freeze() {
    Locked guard(lock_);
    cut_.frozen = true;
}

void RankClock::resume() {
    Locked guard(lock_);
    cut_.closed = cut_.epoch;
    clear_epoch();
    ring();
}

void RankClock::restart() {
    lock_.reset();
    Locked guard(lock_);
    cut_.closed = cut_.epoch = 0;  // the new root counts from 1
    clear_epoch();
    ring();
}

void RankClock::clear_epoch() {
    set_pending(0);
    cut_.clear();
    for (Comm& c : comms_) c.snap = c.target = c.raised = 0;
    channel_targets_.clear();
    demanded_.clear();
    licensors_.clear();
    drop_grants();
    licence_ = {};
    accesses_ = {};
    stall_.since = stall_.times = 0;
    slots_.each([this](Slot& s) FERMATA_LOCKS_UNSEEN {
        s.rounds_used = stall_.rounds;
        s.waits = false;
    });
    targets_.clear(arena_);
    outbox_.clear(arena_);
}

void RankClock::set_pending(uint32_t value) {
    pending_.store(value, std::memory_order_seq_cst);
    for (Comm& c : comms_) c.pending.store(value, std::memory_order_seq_cst);
}

void RankClock::ring() {
    bell_.fetch_add(1, std::memory_order_release);
    if (gates_.parked != 0 || policy_.park_at_exit) futex_wake_all(&bell_);
}

}  // namespace fermata::clock
