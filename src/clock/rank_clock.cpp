// The slow paths: gates, waits, and the agent's side. Step names follow docs/collective-clock.md.
#include <linux/membarrier.h>

#include <algorithm>

#include "base/naps.h"
#include "clock/clock.h"
#include "clock/messages.h"
#include "clock/text.h"

namespace fermata::clock {

namespace {

constexpr size_t kTableBuckets = 4096;
constexpr uint64_t kShortestPatience = 10'000;

size_t hash_of(Uid uid) {
    uint64_t x = static_cast<uint64_t>(uid) * 0x9e3779b97f4a7c15ull;
    return x ^ (x >> 32);
}

// What is repeated because of a guess is repeated ever more rarely, so that the guess cannot keep the job
// from a safe state; but not exponentially, since a chain of n dependencies takes n repetitions.
uint64_t patience(uint64_t delay, uint64_t times) {
    return std::max(delay, kShortestPatience) * (1 + times + times * times / 8);
}

Instance snap_of(const Comm& c) { return std::max(c.obliged_ok, c.told_ok); }

}  // namespace

// A chunk of the outgoing queue: records of a length word and that many bytes, never over a chunk's end.
struct RankClock::Chunk {
    Chunk* next;
    uint32_t head, tail;
    uint8_t bytes[2 * kMaxMessage - 16];
};

bool process_fence() {
    auto call = [](long command) {
        long result;
        asm volatile("syscall"
                     : "=a"(result)
                     : "a"(long(SYS_membarrier)), "D"(command), "S"(0L), "d"(0L)
                     : "rcx", "r11", "memory");
        return result;
    };
    if (call(MEMBARRIER_CMD_PRIVATE_EXPEDITED) == 0) return true;
    // -EPERM: this process (after a restart: this new process) has not registered yet.
    if (call(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0 && call(MEMBARRIER_CMD_PRIVATE_EXPEDITED) == 0)
        return true;
    return call(MEMBARRIER_CMD_GLOBAL) == 0;
}

Uid pseudo_uid(Uid parent, uint64_t group_hash, int32_t tag) {
    uint64_t x = hash_of(parent) * 0xff51afd7ed558ccdull + group_hash;
    x = (x ^ (x >> 33)) * 0xc4ceb9fe1a85ec53ull + static_cast<uint32_t>(tag);
    x = (x ^ (x >> 29)) * 0x9fb21c651e98df25ull;
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
    : policy_(policy_of(options.protocol)), options_(options), environment_(environment), arena_(memory) {
    hash_size_ = 64;
    hash_ = static_cast<Comm**>(arena_.take(hash_size_ * sizeof(void*)));
    agent_slot_ = make_slot(kNoThread);
}

Slot* RankClock::make_slot(int index) {
    Slot* s = arena_.make<Slot>();
    size_t bytes = static_cast<size_t>(options_.world) * sizeof(uint64_t);
    s->sent = static_cast<uint64_t*>(arena_.take(bytes));
    s->received = static_cast<uint64_t*>(arena_.take(bytes));
    s->labels = static_cast<Labels*>(arena_.take(bytes));
    s->index = index;
    s->rounds_used = rounds_;
    return s;
}

Slot& RankClock::new_slot(int index) {
    Locked guard(lock_);
    Slot* s = slots_[index].load(std::memory_order_relaxed);
    if (!s) {
        s = make_slot(index);
        slots_end_ = std::max(slots_end_, index + 1);
        slots_used_++;
        slots_[index].store(s, std::memory_order_release);
    }
    return *s;
}

Comm* RankClock::lookup(Uid uid) const {
    for (Comm* c = hash_[hash_of(uid) & (hash_size_ - 1)]; c; c = c->next_hash)
        if (c->uid == uid) return c;
    return nullptr;
}

Comm* RankClock::insert(Uid uid, const Rank* members, int32_t count) {
    if (Comm* known = lookup(uid)) {
        known->stub = false;
        known->size = count;
        return known;
    }
    if (comm_count_ >= hash_size_) {
        size_t bigger = hash_size_ * 2;
        auto** buckets = static_cast<Comm**>(arena_.take(bigger * sizeof(void*)));
        for (Comm* c = comms_; c; c = c->next) {
            Comm*& bucket = buckets[hash_of(c->uid) & (bigger - 1)];
            c->next_hash = bucket;
            bucket = c;
        }
        arena_.give(hash_, hash_size_ * sizeof(void*));
        hash_ = buckets;
        hash_size_ = bigger;
    }
    Comm* c = arena_.make<Comm>();
    c->pending.store(pending_.load(std::memory_order_relaxed), std::memory_order_relaxed);
    c->uid = uid;
    c->size = count;
    Comm*& bucket = hash_[hash_of(uid) & (hash_size_ - 1)];
    c->next_hash = bucket;
    bucket = c;
    c->next = comms_;
    if (comms_) comms_->previous = c;
    comms_ = c;
    comm_count_++;
    // Peers may have used it, and said so, before it was known here.
    if (table_)
        for (Target* t = table_[hash_of(uid) & (kTableBuckets - 1)]; t; t = t->next)
            if (t->uid == uid) c->target = t->instance;
    return c;
}

void RankClock::keep_members(Comm& c, const Rank* members, int32_t count) {
    if (c.has_members) return;
    c.members.clear();
    for (int32_t i = 0; i < count; i++) c.members.push(arena_, members[i]);
    std::sort(c.members.begin(), c.members.end());  // the same list in all participants
    c.has_members = true;
}

Comm* RankClock::register_comm(Uid uid, const Rank* members, int32_t count) {
    Locked guard(lock_);
    return insert(uid, members, count);
}

Comm* RankClock::register_group_call(Uid uid, const Rank* members, int32_t count) {
    Locked guard(lock_);
    Comm* c = insert(uid, members, count);
    keep_members(*c, members, count);
    return c;
}

void RankClock::unregister_comm(Comm* comm) {
    Locked guard(lock_);
    for (Comm** link = &hash_[hash_of(comm->uid) & (hash_size_ - 1)]; *link; link = &(*link)->next_hash)
        if (*link == comm) {
            *link = comm->next_hash;
            break;
        }
    (comm->previous ? comm->previous->next : comms_) = comm->next;
    if (comm->next) comm->next->previous = comm->previous;
    comm_count_--;
    arena_.drop(comm);
    ring();
}

Comm* RankClock::find(Uid uid) {
    Locked guard(lock_);
    return lookup(uid);
}

// ---- who is needed

bool RankClock::is_needy() const {
    if (!known_) return false;
    for (Comm* c = comms_; c; c = c->next)
        if (c->entered.load(std::memory_order_acquire) < c->target) return true;
    for (const Peer& peer : channel_targets_)
        if (sent_total(peer.rank) < peer.count) return true;
    return false;
}

bool RankClock::serves(const Slot& s) const {
    if (!thread_multiple_ || slots_used_ <= 1) return is_needy();
    if (!known_) return false;
    for (Comm* c = comms_; c; c = c->next)
        if (c->last_thread.load(std::memory_order_relaxed) == s.index &&
            c->entered.load(std::memory_order_acquire) < c->target)
            return true;
    for (const Peer& peer : channel_targets_)
        if (sent_total(peer.rank) < peer.count && answers(s, peer)) return true;
    return false;
}

// Is it this thread that will send what the peer demands? One that has sent messages of that label before; if
// there is none, one that has sent there at all. A thread that is not meant could meet the demand every time,
// and raise targets on its way, for ever (explorer, seeds 288002, 288169 and 411887). So when one peer asks
// again and again, half of the threads in question answer, another half each time and after each stall.
bool RankClock::answers(const Slot& s, const Peer& peer) const {
    auto sent_any = [&](const Slot& x) { return __atomic_load_n(&x.sent[peer.rank], __ATOMIC_RELAXED) != 0; };
    auto sent_such = [&](const Slot& x) {
        return (__atomic_load_n(&x.labels[peer.rank], __ATOMIC_RELAXED) & peer.wanted) != 0;
    };
    int any = 0, such = 0;
    for (int i = 0; i < slots_end_; i++)
        if (const Slot* other = slots_[i].load(std::memory_order_relaxed)) {
            any += sent_any(*other);
            such += sent_such(*other);
        }
    if (such != 0 ? !sent_such(s) : !sent_any(s)) return false;
    if (peer.times <= 8 || (such != 0 ? such : any) == 1) return true;
    uint64_t turn = peer.count + stalls_;
    return passes_for(s, peer.rank, static_cast<uint32_t>(3 + turn % 1'000'000)) != 0;
}

bool RankClock::may_act(const Slot& s) const { return serves(s) || (has_round(s) && is_needy()); }

// Like licences, later rounds go to half of the threads.
bool RankClock::has_round(const Slot& s) const {
    return s.rounds_used < rounds_ && passes_for(s, kRootRank - 1, static_cast<uint32_t>(stalls_)) != 0;
}

bool RankClock::act(Slot& s) { return serves(s) || spend_round(s); }

bool RankClock::spend_round(Slot& s) {
    if (!has_round(s) || !is_needy()) return false;
    s.rounds_used = rounds_;
    return true;
}

bool RankClock::spend_grant(Slot& s) {
    if (s.grants == 0) return false;
    s.grants--;
    return true;
}

// How many gates a thread may pass for this licence. One for everybody at first. Later ones go to half of the
// threads, another half each time, and let them pass more: otherwise a thread that nobody waits for could
// raise the licensor's targets as fast as the one it waits for gets on (explorer, seeds 251745 and 252276).
uint64_t RankClock::passes_for(const Slot& s, Rank licensor, uint32_t credit) const {
    if (credit <= 2) return 1;
    uint64_t draw = uint64_t(uint32_t(licensor)) << 32 | credit;
    uint64_t thread = uint64_t(uint32_t(options_.me)) << 32 | uint32_t(s.index);
    uint64_t hash =
        hash_of(static_cast<Uid>((hash_of(static_cast<Uid>(draw)) + thread) * 0xff51afd7ed558ccdull));
    return hash >> 17 & 1 ? credit : 0;
}

void RankClock::apply_licence(Rank from, uint32_t credit) {
    if (!policy_.demands) return;  // the published rules know nothing of the kind
    Licensor* known = std::find_if(licensors_.begin(), licensors_.end(),
                                   [from](const Licensor& l) { return l.rank == from; });
    if (known == licensors_.end()) {
        licensors_.push(arena_, Licensor{from, 0, false});
        known = licensors_.end() - 1;
    }
    if (credit != 0 && credit <= known->credit) return;
    if (!known->active) licensors_active_++;
    known->active = true;
    if (credit == 0) return;  // for holders of locks: see may_access
    known->credit = credit;
    for (int i = 0; i < slots_end_; i++)
        if (Slot* s = slots_[i].load(std::memory_order_relaxed)) s->grants += passes_for(*s, from, credit);
}

void RankClock::apply_revoke(Rank from) {
    for (Licensor& l : licensors_)
        if (l.rank == from && l.active) {
            l.active = false;
            if (--licensors_active_ == 0) drop_grants();
        }
}

void RankClock::drop_grants() {
    for (int i = 0; i < slots_end_; i++)
        if (Slot* s = slots_[i].load(std::memory_order_relaxed)) s->grants = 0;
}

uint64_t RankClock::sent_total(Rank x) const {
    uint64_t sum = agent_slot_->sent[x];
    for (int i = 0; i < slots_end_; i++)
        if (Slot* s = slots_[i].load(std::memory_order_relaxed))
            sum += __atomic_load_n(&s->sent[x], __ATOMIC_RELAXED);
    return sum;
}

uint64_t RankClock::received_total(Rank x) const {
    uint64_t sum = agent_slot_->received[x];
    for (int i = 0; i < slots_end_; i++)
        if (Slot* s = slots_[i].load(std::memory_order_relaxed))
            sum += __atomic_load_n(&s->received[x], __ATOMIC_RELAXED);
    return sum;
}

Totals RankClock::totals() const {
    Totals totals{0, 0};
    for (Rank x = 0; x < options_.world; x++) {
        totals.sent += sent_total(x);
        totals.received += received_total(x);
    }
    return totals;
}

// ---- gates (step a)

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

void RankClock::raise(Comm& c, Instance k) {
    if (k <= c.raised) return;
    c.raised = k;
    Entry e;
    e.uid = c.uid;
    e.target = k;
    e.size = static_cast<uint32_t>(c.size);
    uint32_t next_run = 0;
    do {  // usually once: only group calls name their members
        Writer w(scratch_, sizeof scratch_);
        w.header(Kind::raise, epoch_);
        put_entry(w, e, c, &next_run);
        queue(w);
    } while (next_run < c.members.size());
}

Verdict RankClock::gate_locked(Comm& c, Slot& s, Instance k, Gate kind, GateSite& site, bool& poke) {
    if (pending_.load(std::memory_order_relaxed) == 0) {
        approve(c, s, k, kind);
        return Verdict::pass;
    }
    if (!site.undone) {
        if (!snapped_) return Verdict::wait;  // the snapshot is about to count this call
        // Counted: obliged, must go in. (obliged or told >= k would not do: that can be another thread's
        // store which no gate has approved.)
        if (k <= c.snap) return Verdict::pass;
        undo(c, k, kind);
        site.undone = true;
        poke = true;  // this rank may have become safe by it
    }
    if (!frozen_) {
        if (known_) {
            bool in = k <= c.target;
            if (!in && (serves(s) || spend_round(s) || spend_grant(s))) {
                raise(c, k);
                passes_++;
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
        bool parked = verdict == Verdict::wait;
        if (parked != (s.parked != 0)) parked ? parked_++ : parked_--;
        s.parked = parked;
        s.gate_comm = parked ? &c : nullptr;
        s.gate_instance = k;
    }
    if (poke) environment_.poke(environment_.self);
    return verdict;
}

bool RankClock::gate(Comm& c, Slot& s, Instance k, Gate kind) {
    GateSite site;
    Naps naps(options_.nap_us);
    for (;;) {
        uint32_t seen = bell_.load(std::memory_order_acquire);
        Verdict verdict = gate_step(c, s, k, kind, site);
        if (verdict != Verdict::wait) return verdict == Verdict::pass;
        environment_.pull(environment_.self);
        environment_.progress(environment_.self);
        environment_.nap(environment_.self, &bell_, seen, naps.next_us());
    }
}

// ---- one-sided calls

// Who holds nothing is held up at once, or new locks would be taken as fast as old ones are given back. Who
// holds something goes on, unless this rank has said that it is safe: the root may have declared. Then the
// rank that waits for it asks with a licence, which is news, and until it is revoked nobody says that he is
// safe.
bool RankClock::may_access(Slot& s, bool holds) {
    if (pending_.load(std::memory_order_relaxed) == 0) return true;
    if (frozen_) return false;
    if (holds) return !(reported_ && reported_version_ == version_);
    return known_ && (serves(s) || spend_round(s) || spend_grant(s));
}

bool RankClock::access_step(Slot& s, bool holds) {
    Locked guard(lock_);
    bool pass = may_access(s, holds);
    __atomic_store_n(&s.accesses, pass ? 1 : 0, __ATOMIC_RELEASE);
    bool parked = !pass;
    if (parked != (s.parked != 0)) parked ? parked_++ : parked_--;
    s.parked = parked;
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
        environment_.pull(environment_.self);
        environment_.progress(environment_.self);
        environment_.nap(environment_.self, &bell_, seen, naps.next_us());
    }
}

// The library cannot say whom the thread waits for, so all who hold something are asked to go on.
void RankClock::look_at_accesses(uint64_t now_ns) {
    accessing_ = false;
    for (int i = 0; i < slots_end_; i++)
        if (const Slot* s = slots_[i].load(std::memory_order_relaxed))
            accessing_ |= __atomic_load_n(&s->accesses, __ATOMIC_ACQUIRE) != 0;
    if (!accessing_) {
        access_since_ = 0;
        if (!access_licence_) return;
        access_licence_ = false;
        if (licence_out_ && licence_sites_ == 0) revoke();
        return;
    }
    if (access_since_ == 0) access_since_ = now_ns ? now_ns : 1;
    if (access_licence_ || !policy_.demands || now_ns < access_since_ ||
        now_ns - access_since_ < options_.demand_delay_ns)
        return;
    access_licence_ = licence_out_ = true;
    Writer w(scratch_, sizeof scratch_);
    w.header(Kind::licence, epoch_).rank(options_.me).u32(0);
    queue(w);
}

bool RankClock::may_leave(Slot& s) {
    if (!policy_.park_at_exit) return true;
    Locked guard(lock_);
    return pending_.load(std::memory_order_relaxed) == 0 || (!frozen_ && is_needy());
}

void RankClock::leave_pending(Comm& c, Slot& s) {
    environment_.poke(environment_.self);
    Naps naps(options_.nap_us);
    for (;;) {
        uint32_t seen = bell_.load(std::memory_order_acquire);
        s.held_at_exit = !may_leave(s);
        if (!s.held_at_exit) return;
        environment_.pull(environment_.self);
        environment_.progress(environment_.self);
        environment_.nap(environment_.self, &bell_, seen, naps.next_us());
    }
}

bool RankClock::needy() {
    Locked guard(lock_);
    return is_needy();
}

// ---- blocked waits (step e)

bool RankClock::blocked(Slot& s, WaitSite& site, uint64_t now_ns, bool in_wait) {
    if (!policy_.demands) return false;
    Locked guard(lock_);
    if (in_wait && site.era != era_) s.waits = true;
    if (site.era != era_) {
        site = WaitSite{};
        site.era = era_;
    }
    if (pending_.load(std::memory_order_relaxed) == 0 || frozen_ || !may_act(s)) {
        site.since = 0;
        return false;
    }
    if (site.since == 0) site.since = site.asked = now_ns ? now_ns : 1;
    if (now_ns < site.asked || now_ns - site.asked < options_.demand_delay_ns) return false;
    site.asked = now_ns ? now_ns : 1;
    return true;
}

void RankClock::need_message(Slot& s, Rank source, Labels wanted) {
    if (source < 0 || source >= options_.world) return;
    if (source == options_.me) {
        // Another thread of this rank must send it: the stall rule's business, if it is held at a gate.
        Locked guard(lock_);
        s.waits = false;
        return;
    }
    {
        Locked guard(lock_);
        if (pending_.load(std::memory_order_relaxed) == 0 || frozen_) return;
        uint64_t count = received_total(source) + 1;
        Peer* known = std::find_if(demanded_.begin(), demanded_.end(),
                                   [source](const Peer& peer) { return peer.rank == source; });
        if (known == demanded_.end()) {
            demanded_.push(arena_, Peer{source, 0, 0, 0});
            known = demanded_.end() - 1;
        }
        // Several threads may wait for the same number, for different messages.
        if (known->count > count || (known->count == count && (wanted & ~known->wanted) == 0) || !act(s))
            return;
        known->wanted = known->count == count ? known->wanted | wanted : wanted;
        known->count = count;
        Writer w(scratch_, sizeof scratch_);
        w.header(Kind::demand, epoch_).rank(source).rank(options_.me).u64(count).u64(known->wanted);
        queue(w);
    }
    environment_.poke(environment_.self);
}

void RankClock::need_collective(Slot& s, Comm& c, Instance k) {
    {
        Locked guard(lock_);
        if (pending_.load(std::memory_order_relaxed) == 0 || frozen_ || k <= c.target || k <= c.raised ||
            !act(s))
            return;
        raise(c, k);
    }
    environment_.poke(environment_.self);
}

void RankClock::need_anything(Slot& s, WaitSite& site) {
    {
        Locked guard(lock_);
        if (pending_.load(std::memory_order_relaxed) == 0 || frozen_ || site.era != era_) return;
        if (s.licence_era != era_) {
            s.licence_era = era_;
            s.licences = 0;
        }
        uint64_t delay = patience(options_.demand_delay_ns, s.licences);
        if (site.asked - std::max(site.since, site.licensed_at) < delay || !act(s)) return;
        s.licences++;
        site.licensed_at = site.asked;
        if (!site.licensed) licence_sites_++;
        site.licensed = true;
        credit_++;
        licence_out_ = true;
        Writer w(scratch_, sizeof scratch_);
        w.header(Kind::licence, epoch_).rank(options_.me).u32(credit_);
        queue(w);
    }
    environment_.poke(environment_.self);
}

void RankClock::revoke() {
    licence_out_ = false;
    Writer w(scratch_, sizeof scratch_);
    w.header(Kind::revoke, epoch_).rank(options_.me);
    queue(w);
}

void RankClock::waited_slow(Slot& s, WaitSite& site) {
    bool poke = false;
    {
        Locked guard(lock_);
        if (site.licensed && site.era == era_ && pending_.load(std::memory_order_relaxed) != 0 &&
            --licence_sites_ == 0 && licence_out_ && !access_licence_) {
            revoke();
            poke = true;
        }
        if (&site != &s.poll_site) s.waits = false;
        site = WaitSite{};
    }
    if (poke) environment_.poke(environment_.self);
}

// ---- the agent: messages in

bool RankClock::inbox(const void* bytes, size_t size, const char** why) {
    auto refuse = [why](const char* reason) {
        if (why) *why = reason;
        return false;
    };
    Reader r(bytes, size);
    Header h;
    if (!r.header(&h)) return refuse("clock message of an unknown version or kind");
    if (h.kind == Kind::intent) {
        if (!r.finished()) return refuse("clock message INTENT has a wrong length");
        {
            Locked guard(lock_);
            if (h.epoch <= closed_ || h.epoch <= epoch_) return true;
            clear_epoch();  // usually clean already: an older epoch that was never closed
            epoch_ = h.epoch;
            era_++;
            set_pending(1);
        }
        environment_.fence(environment_.self);
        Locked guard(lock_);
        snapshot();
        ring();
        return true;
    }
    Locked guard(lock_);
    if (h.epoch != epoch_ || h.epoch <= closed_ || !snapped_) return true;  // of an epoch that is over
    switch (h.kind) {
        case Kind::targets: {
            uint32_t last = r.u32(), count = r.u32();
            if ((r.u32() & kSynchronousSends) != 0) job_synchronous_ = true;
            for (uint32_t i = 0; i < count && r.ok(); i++) {
                Entry e;
                if (r.entry(&e)) apply(e);
            }
            if (!r.finished()) return refuse("clock message TARGETS has a wrong length");
            if (last) known_ = true;
            break;
        }
        case Kind::news: {
            Version version = r.u32();
            uint32_t count = r.u32();
            if (!known_) return refuse("clock message NEWS came before the targets");
            if (r.ok() && version != version_ + 1) return refuse("clock message NEWS out of order");
            for (uint32_t i = 0; i < count && r.ok(); i++) {
                auto what = static_cast<News>(r.u32());
                if (what == News::target) {
                    Entry e;
                    if (r.entry(&e)) apply(e);
                } else if (what == News::channel) {
                    Rank from = r.rank();
                    Rank to = r.rank();
                    uint64_t n = r.u64();
                    Labels wanted = r.u64();
                    if (from != options_.me || to < 0 || to >= options_.world) continue;
                    Peer* known = std::find_if(channel_targets_.begin(), channel_targets_.end(),
                                               [to](const Peer& peer) { return peer.rank == to; });
                    if (known == channel_targets_.end()) {
                        channel_targets_.push(arena_, Peer{to, 0, 0, 0});
                        known = channel_targets_.end() - 1;
                    }
                    if (n < known->count) continue;
                    if (n > known->count) {
                        known->times++;
                        known->wanted = 0;
                    }
                    known->count = n;
                    known->wanted |= wanted;
                } else if (what == News::licence || what == News::revoke) {
                    Rank from = r.rank();
                    uint64_t credit = what == News::licence ? r.u32() : 0;
                    // A single thread that waits cannot use its own licence, and must not keep it for later.
                    if (from == options_.me && !(thread_multiple_ && slots_used_ > 1)) continue;
                    what == News::licence ? apply_licence(from, static_cast<uint32_t>(credit))
                                          : apply_revoke(from);
                } else {
                    return refuse("clock message NEWS has an unknown item");
                }
            }
            if (!r.finished()) return refuse("clock message NEWS has a wrong length");
            version_ = version;
            break;
        }
        case Kind::freeze:
            if (!r.finished()) return refuse("clock message FREEZE has a wrong length");
            frozen_ = true;
            break;
        default:
            return refuse("clock message of a kind that only travels upwards");
    }
    ring();
    return true;
}

void RankClock::snapshot() {
    Entry e;
    Writer w(scratch_, sizeof scratch_);
    uint32_t count = 0;
    auto begin = [&] {
        w = Writer(scratch_, sizeof scratch_);
        w.header(Kind::report, epoch_).u32(0).u32(0).u32(synchronous_.load() != 0 ? kSynchronousSends : 0);
        count = 0;
    };
    auto flush = [&](bool last) {
        w.patch_u32(kHeaderBytes, last);
        w.patch_u32(kHeaderBytes + 4, count);
        queue(w);
    };
    begin();
    for (Comm* c = comms_; c; c = c->next) {
        Instance entered = c->entered.load(std::memory_order_acquire);  // first: see Comm
        c->obliged_ok = c->obliged.load(std::memory_order_acquire);
        c->told_ok = c->told.load(std::memory_order_acquire);
        c->snap = snap_of(*c);
        c->target = c->snap;
        c->raised = 0;
        if (entered == 0) continue;  // the default of everybody who does not hear of it
        e.uid = c->uid;
        e.target = c->snap;
        e.least_obliged = c->snap;
        e.least_entered = entered;
        e.ranks = 1;
        e.size = static_cast<uint32_t>(c->size);
        uint32_t next_run = 0;
        do {
            if (w.room() < kEntryBytes + 64 * kRunBytes) {
                flush(false);
                begin();
            }
            put_entry(w, e, *c, &next_run);
            e.ranks = 0;
            count++;
        } while (next_run < c->members.size());
    }
    flush(true);
    snapped_ = true;
}

// Writes `e` with as many of the runs of c's members, from member *next on, as fit; advances *next.
void RankClock::put_entry(Writer& w, Entry e, const Comm& c, uint32_t* next) {
    constexpr uint32_t kRunsAtMost = 1024;
    size_t room = (w.room() - kEntryBytes) / kRunBytes;
    size_t count_at = w.size() + kEntryBytes - 4;
    e.run_count = 0;
    w.entry(e);
    const auto& members = c.members;
    while (*next < members.size() && e.run_count < kRunsAtMost && e.run_count < room) {
        Run run{members[*next], 1};
        while (*next + run.count < members.size() && members[*next + run.count] == run.first + run.count)
            run.count++;
        w.run(run);
        *next += run.count;
        e.run_count++;
    }
    w.patch_u32(count_at, e.run_count);
}

void RankClock::apply(const Entry& e) {
    Comm* c = lookup(e.uid);
    if (!c && e.run_count != 0 && e.names(options_.me)) {
        c = insert(e.uid, nullptr,
                   static_cast<int32_t>(e.size));  // this rank will call it, and is needed there
        c->stub = true;
    }
    if (c) {
        c->target = std::max(c->target, e.target);
        return;
    }
    if (!table_) table_ = static_cast<Target**>(arena_.take(kTableBuckets * sizeof(void*)));
    Target*& bucket = table_[hash_of(e.uid) & (kTableBuckets - 1)];
    for (Target* t = bucket; t; t = t->next)
        if (t->uid == e.uid) {
            t->instance = std::max(t->instance, e.target);
            return;
        }
    auto* t = arena_.make<Target>();
    t->uid = e.uid;
    t->instance = e.target;
    t->next = bucket;
    bucket = t;
}

// ---- the agent: safe or not (step f)

// The thread is inside MPI: blocked in a wait, or captive in a collective.
bool RankClock::in_mpi(int32_t index) const {
    if (index < 0 || index >= kMaxSlots) return false;
    const Slot* s = slots_[index].load(std::memory_order_relaxed);
    if (s && s->waits) return true;
    for (const Comm* c = comms_; c; c = c->next)
        if (c->last_thread.load(std::memory_order_relaxed) == index &&
            c->inside.load(std::memory_order_acquire) != 0)
            return true;
    return false;
}

// Something is owed and does not move. If the thread that should do it is outside MPI, it computes, or it
// waits for another thread of this rank, which may be parked. If it is inside, it has asked for what it
// needs; but which thread should do it is a guess, so that is only a reason to be patient.
void RankClock::look_for_stall(uint64_t now_ns) {
    if (!thread_multiple_ || slots_used_ <= 1) return;
    uint64_t stamp = passes_;
    bool outside = false, somebody_known = true;
    for (Comm* c = comms_; c; c = c->next) {
        Instance entered = c->entered.load(std::memory_order_acquire);
        if (entered >= c->target) continue;
        int32_t server = c->last_thread.load(std::memory_order_relaxed);
        stamp += entered;
        if (server == kNoThread) somebody_known = false;
        outside |= !in_mpi(server);
    }
    for (const Peer& peer : channel_targets_) {
        uint64_t sent = sent_total(peer.rank);
        if (sent >= peer.count) continue;
        bool inside = false;
        for (int i = 0; i < slots_end_; i++) {
            const Slot* s = slots_[i].load(std::memory_order_relaxed);
            inside |= s && answers(*s, peer) && in_mpi(i);
        }
        stamp += sent;
        if (sent == 0) somebody_known = false;
        outside |= !inside;
    }
    if (stamp != stall_stamp_ || stall_since_ == 0) {
        stall_stamp_ = stamp;
        stall_since_ = now_ns ? now_ns : 1;
        return;
    }
    uint64_t delay = patience(somebody_known ? options_.stall_ns : options_.demand_delay_ns, stalls_);
    if (!outside) delay *= 10;
    if (now_ns < stall_since_ || now_ns - stall_since_ < delay) return;
    stall_since_ = now_ns ? now_ns : 1;
    stalls_++;
    rounds_++;
    ring();
}

void RankClock::poll(uint64_t now_ns) {
    Locked guard(lock_);
    if (pending_.load(std::memory_order_relaxed) == 0 || !known_ || frozen_) return;
    look_at_accesses(now_ns);
    if (is_needy()) {
        look_for_stall(now_ns);
        return;
    }
    stall_since_ = 0;
    if (licence_out_ && !access_licence_) revoke();
    // Others wait for what this rank may still do (may_access); when they do not any more, that is news.
    if (accessing_ || licensors_active_ != 0) return;
    for (Comm* c = comms_; c; c = c->next)  // after is_needy(): whoever saw `entered` sees `inside`
        if (c->inside.load(std::memory_order_acquire) != 0) return;
    if (reported_ && reported_version_ == version_) return;
    reported_ = true;
    reported_version_ = version_;
    Writer w(scratch_, sizeof scratch_);
    w.header(Kind::safe, epoch_).u32(version_);
    queue(w);
}

void RankClock::freeze() {
    Locked guard(lock_);
    frozen_ = true;
}

void RankClock::set_pending(uint32_t value) {
    pending_.store(value, std::memory_order_seq_cst);
    for (Comm* c = comms_; c; c = c->next) c->pending.store(value, std::memory_order_seq_cst);
}

void RankClock::clear_epoch() {
    set_pending(0);
    snapped_ = known_ = job_synchronous_ = frozen_ = reported_ = false;
    version_ = reported_version_ = 0;
    for (Comm* c = comms_; c; c = c->next) c->snap = c->target = c->raised = 0;
    channel_targets_.clear();
    demanded_.clear();
    licensors_.clear();
    licensors_active_ = 0;
    drop_grants();
    credit_ = 0;
    licence_out_ = false;
    licence_sites_ = 0;
    accessing_ = access_licence_ = false;
    access_since_ = 0;
    stall_since_ = stalls_ = 0;
    for (int i = 0; i < slots_end_; i++)
        if (Slot* s = slots_[i].load(std::memory_order_relaxed)) {
            s->rounds_used = rounds_;
            s->waits = false;
        }
    if (table_)
        for (size_t i = 0; i < kTableBuckets; i++)
            while (Target* t = table_[i]) {
                table_[i] = t->next;
                arena_.drop(t);
            }
    while (Chunk* chunk = out_first_) {
        out_first_ = chunk->next;
        arena_.drop(chunk);
    }
    out_last_ = nullptr;
}

void RankClock::resume() {
    Locked guard(lock_);
    closed_ = epoch_;
    clear_epoch();
    ring();
}

void RankClock::restart() {
    lock_.reset();
    Locked guard(lock_);
    closed_ = epoch_ = 0;  // the new root counts from 1
    clear_epoch();
    ring();
}

void RankClock::ring() {
    bell_.fetch_add(1, std::memory_order_release);
    if (parked_ != 0 || policy_.park_at_exit) futex_wake_all(&bell_);
}

// ---- the agent: messages out

void RankClock::queue(const Writer& message) {
    uint32_t size = static_cast<uint32_t>(message.size());
    if (!out_last_ || sizeof(out_last_->bytes) - out_last_->tail < sizeof size + size) {
        auto* chunk = arena_.make<Chunk>();
        (out_last_ ? out_last_->next : out_first_) = chunk;
        out_last_ = chunk;
    }
    memcpy(out_last_->bytes + out_last_->tail, &size, sizeof size);
    memcpy(out_last_->bytes + out_last_->tail + sizeof size, message.bytes(), size);
    out_last_->tail += sizeof size + size;
}

size_t RankClock::outbox(void* bytes, size_t capacity) {
    Locked guard(lock_);
    while (Chunk* chunk = out_first_) {
        if (chunk->head == chunk->tail) {
            if (!chunk->next) {  // keep the last one
                chunk->head = chunk->tail = 0;
                return 0;
            }
            out_first_ = chunk->next;
            arena_.drop(chunk);
            continue;
        }
        uint32_t size;
        memcpy(&size, chunk->bytes + chunk->head, sizeof size);
        if (size > capacity) return 0;
        memcpy(bytes, chunk->bytes + chunk->head + sizeof size, size);
        chunk->head += sizeof size + size;
        return size;
    }
    return 0;
}

size_t RankClock::diagnosis(char* text, size_t size) {
    Locked guard(lock_);
    Text t(text, size);
    if (pending_.load(std::memory_order_relaxed) == 0) return 0;
    t << "checkpoint " << uint64_t{epoch_} << ": "
      << (frozen_    ? "frozen"
          : known_   ? "converging"
          : snapped_ ? "waiting for targets"
                     : "taking the snapshot")
      << ", version " << uint64_t{version_} << "\n";
    for (Comm* c = comms_; c; c = c->next) {
        Instance entered = c->entered.load(std::memory_order_acquire);
        if (known_ && entered < c->target)
            t << "must still begin collective " << c->target << " of communicator "
              << static_cast<uint64_t>(c->uid) << ", has begun " << entered << "\n";
        if (c->inside.load(std::memory_order_acquire) != 0)
            t << "inside collective " << entered << " of communicator " << static_cast<uint64_t>(c->uid)
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
    if (access_licence_)
        t << "has asked all who hold a lock to go on (one-sided call)\n";
    else if (licence_out_)
        t << "has asked all ranks to go on (wildcard or polling wait)\n";
    for (int i = 0; i < slots_end_; i++)
        if (Slot* s = slots_[i].load(std::memory_order_relaxed); s && s->accesses != 0)
            t << "thread " << uint64_t(i) << " is in a one-sided call\n";
        else if (s && s->parked && s->gate_comm == nullptr)
            t << "thread " << uint64_t(i) << " is parked before a one-sided call\n";
        else if (s && s->parked)
            t << "thread " << uint64_t(i) << " is parked before collective " << s->gate_instance
              << " of communicator " << static_cast<uint64_t>(s->gate_comm->uid) << "\n";
        else if (s && s->held_at_exit)
            t << "thread " << uint64_t(i) << " is parked at the end of a collective\n";
    return t.size();
}

}  // namespace fermata::clock
