// Messages between a rank and the tree (steps b and c of docs/collective-clock.md;
// docs/formats/clock-messages.md).
#include <algorithm>

#include "clock/clock.h"
#include "clock/messages.h"

namespace fermata::clock {

// ---- in

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
            if (h.epoch <= cut_.closed || h.epoch <= cut_.epoch) return true;
            clear_epoch();  // usually clean already: an older epoch that was never closed
            cut_.epoch = h.epoch;
            cut_.era++;
            set_pending(1);
        }
        environment_.fence(environment_.self);
        Locked guard(lock_);
        snapshot();
        ring();
        return true;
    }
    Locked guard(lock_);
    // The message belongs to an epoch that is over.
    if (h.epoch != cut_.epoch || h.epoch <= cut_.closed || !cut_.snapped) return true;
    if (const char* reason = hear(h, r)) return refuse(reason);
    if (const char* reason = broken()) return refuse(reason);
    ring();
    return true;
}

// Null, or why the message is not acceptable.
const char* RankClock::hear(const Header& h, Reader& r) {
    switch (h.kind) {
        case Kind::targets:
            return hear_targets(r);
        case Kind::news:
            return hear_news(r);
        case Kind::freeze:
            if (!r.finished()) return "clock message FREEZE has a wrong length";
            cut_.frozen = true;
            return nullptr;
        default:
            return "clock message of a kind that only travels upwards";
    }
}

const char* RankClock::hear_targets(Reader& r) {
    uint32_t last = r.u32(), count = r.u32();
    if ((r.u32() & kSynchronousSends) != 0) cut_.job_synchronous = true;
    for (uint32_t i = 0; i < count && r.ok(); i++) {
        Entry e;
        if (r.entry(&e)) apply(e);
    }
    if (!r.finished()) return "clock message TARGETS has a wrong length";
    if (last) cut_.known = true;
    return nullptr;
}

const char* RankClock::hear_news(Reader& r) {
    Version version = r.u32();
    uint32_t count = r.u32();
    if (!cut_.known) return "clock message NEWS came before the targets";
    if (r.ok() && version != cut_.version + 1) return "clock message NEWS out of order";
    for (uint32_t i = 0; i < count && r.ok(); i++)
        if (const char* why = hear_item(r)) return why;
    if (!r.finished()) return "clock message NEWS has a wrong length";
    cut_.version = version;
    return nullptr;
}

const char* RankClock::hear_item(Reader& r) {
    switch (static_cast<News>(r.u32())) {
        case News::target: {
            Entry e;
            if (r.entry(&e)) apply(e);
            return nullptr;
        }
        case News::channel: {
            Rank from = r.rank();
            Rank to = r.rank();
            uint64_t count = r.u64();
            Labels wanted = r.u64();
            if (from == options_.me && to >= 0 && to < options_.world) hear_channel(to, count, wanted);
            return nullptr;
        }
        case News::licence: {
            Rank from = r.rank();
            uint32_t credit = r.u32();
            // A single thread that waits cannot use its own licence, and must not keep it for later.
            if (from != options_.me || several_threads()) apply_licence(from, credit);
            return nullptr;
        }
        case News::revoke: {
            Rank from = r.rank();
            if (from != options_.me || several_threads()) apply_revoke(from);
            return nullptr;
        }
    }
    return "clock message NEWS has an unknown item";
}

void RankClock::hear_channel(Rank to, uint64_t count, Labels wanted) {
    Peer& known = channel_targets_.of(arena_, to);
    if (count < known.count) return;
    if (count > known.count) {
        known.times++;
        known.wanted = 0;
    }
    known.count = count;
    known.wanted |= wanted;
}

void RankClock::apply(const Entry& e) {
    Comm* c = comms_.find(e.uid);
    if (!c && e.run_count != 0 && e.names(options_.me)) {
        c = insert(e.uid, static_cast<int32_t>(e.size));  // this rank will call it, and is needed there
        c->stub = true;
    }
    if (c)
        c->target = std::max(c->target, e.target);
    else
        targets_.raise(arena_, e.uid, e.target);
}

// Says which of the facts that hold between any two calls does not hold; null: all do. Looked at with each
// message of a checkpoint, also in release: a clock that has lost count must not say that this rank is safe.
// Null, or what is not true.
const char* RankClock::broken() const {
    uint32_t parked = 0, active = 0;
    bool rounds = true, targets = true;
    slots_.each([&](const Slot& s) FERMATA_LOCKS_UNSEEN {
        parked += s.parked != 0;
        rounds &= s.rounds_used <= stall_.rounds;
    });
    for (const Licensors::Licensor& licensor : licensors_.all) active += licensor.active;
    for (const Comm& c : comms_) targets &= c.snap <= c.target;
    if (parked != gates_.parked) return "the clock has lost count of its parked threads";
    if (active != licensors_.active) return "the clock has lost count of licences";
    if (licence_.sites < 0 || (licence_.out && licence_.sites == 0 && !licence_.for_access))
        return "the clock has lost count of waits with a licence";
    if (!rounds) return "a thread has used a round of the clock that has not been";
    if (!targets) return "the clock has a target below what was begun";
    if (cut_.reported && cut_.reported_version > cut_.version)
        return "the clock is safe at a version to come";
    return nullptr;
}

// ---- out

void RankClock::snapshot() {
    Entry e;
    Writer w(scratch_, sizeof scratch_);
    uint32_t count = 0;
    auto begin = [&]() FERMATA_LOCKS_UNSEEN {
        w = Writer(scratch_, sizeof scratch_);
        w.header(Kind::report, cut_.epoch)
            .u32(0)
            .u32(0)
            .u32(synchronous_.load() != 0 ? kSynchronousSends : 0);
        count = 0;
    };
    auto flush = [&](bool last) FERMATA_LOCKS_UNSEEN {
        w.patch_u32(kHeaderBytes, last);
        w.patch_u32(kHeaderBytes + 4, count);
        queue(w);
    };
    // A list of members is not begun in less room than this: each part repeats the entry's fixed fields.
    constexpr size_t kRunsWorthAPart = 64;
    begin();
    for (Comm& c : comms_) {
        Instance entered = c.entered.load(std::memory_order_acquire);  // first: see Comm
        c.obliged_ok = c.obliged.load(std::memory_order_acquire);
        c.told_ok = c.told.load(std::memory_order_acquire);
        c.snap = std::max(c.obliged_ok, c.told_ok);
        c.target = c.snap;
        c.raised = 0;
        if (entered == 0) continue;  // the default of everybody who does not hear of it
        e.uid = c.uid;
        e.target = c.snap;
        e.least_obliged = c.snap;
        e.least_entered = entered;
        e.ranks = 1;
        e.size = static_cast<uint32_t>(c.size);
        uint32_t next_run = 0;
        do {
            if (w.room() < kEntryBytes + kRunsWorthAPart * kRunBytes) {
                flush(false);
                begin();
            }
            put_entry(w, e, c, &next_run);
            e.ranks = 0;
            count++;
        } while (next_run < c.members.size());
    }
    flush(true);
    cut_.snapped = true;
}

// Writes `e` with as many of the runs of c's members, from member *next on, as fit; advances *next.
void RankClock::put_entry(Writer& w, Entry e, const Comm& c, uint32_t* next) {
    constexpr uint32_t kRunsAtMost = 1024;  // 8 KiB: parts of several communicators fit one message
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
        w.header(Kind::raise, cut_.epoch);
        put_entry(w, e, c, &next_run);
        queue(w);
    } while (next_run < c.members.size());
}

void RankClock::licence(uint32_t credit) {
    Writer w(scratch_, sizeof scratch_);
    w.header(Kind::licence, cut_.epoch).rank(options_.me).u32(credit);
    queue(w);
}

void RankClock::revoke() {
    licence_.out = false;
    Writer w(scratch_, sizeof scratch_);
    w.header(Kind::revoke, cut_.epoch).rank(options_.me);
    queue(w);
}

size_t RankClock::outbox(void* bytes, size_t capacity) {
    Locked guard(lock_);
    return outbox_.take(arena_, bytes, capacity);
}

}  // namespace fermata::clock
