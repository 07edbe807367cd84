// This file decides which ranks and threads may go on although a checkpoint is being prepared, because others
// need them, and on whose guess (steps d and e of docs/collective-clock.md). Guesses are repeated ever more
// rarely, and for ever fewer, so that they cannot keep the job from a safe state.
#include <algorithm>

#include "clock/clock.h"
#include "clock/hash.h"
#include "clock/patience.h"

namespace fermata::clock {
namespace {

// The first licences of a rank are for every thread: most waits end with them. (Explorer, seeds 251745 and
// 252276: for ever, later ones are not.)
constexpr uint32_t kLicencesForAll = 2;
// So many demands of one peer are answered by all threads that it may mean. Later ones by half of them.
constexpr uint32_t kDemandsForAll = 8;
// Demands draw as licences do, from the first number that is not for all; the draws repeat after so many.
constexpr uint32_t kFirstDraw = kLicencesForAll + 1;
constexpr uint64_t kDraws = 1'000'000;
// Stall rounds draw like licences of a rank that does not exist.
constexpr Rank kStallDrawer = kRootRank - 1;
// A thread that is inside MPI asks for what it needs itself; then a stall is so many times less likely.
constexpr uint64_t kInsidePatience = 10;
// Any bit of a well mixed number is a fair coin.
constexpr int kCoin = 17;

uint64_t total(const Slots& slots, uint64_t* Slot::*counters, Rank x) {
    uint64_t sum = (slots.agent->*counters)[x];
    slots.each([&](Slot& s) { sum += __atomic_load_n(&(s.*counters)[x], __ATOMIC_RELAXED); });
    return sum;
}

}  // namespace

uint64_t RankClock::sent_total(Rank x) const { return total(slots_, &Slot::sent, x); }
uint64_t RankClock::received_total(Rank x) const { return total(slots_, &Slot::received, x); }

bool RankClock::is_needy() const {
    if (!cut_.known) return false;
    for (const Comm& c : comms_)
        if (c.entered.load(std::memory_order_acquire) < c.target) return true;
    for (const Peer& peer : channel_targets_)
        if (sent_total(peer.rank) < peer.count) return true;
    return false;
}

bool RankClock::serves(const Slot& s) const {
    if (!several_threads()) return is_needy();
    if (!cut_.known) return false;
    for (const Comm& c : comms_)
        if (c.last_thread.load(std::memory_order_relaxed) == s.index &&
            c.entered.load(std::memory_order_acquire) < c.target)
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
    slots_.each([&](const Slot& other) {
        any += sent_any(other);
        such += sent_such(other);
    });
    if (such != 0 ? !sent_such(s) : !sent_any(s)) return false;
    if (peer.times <= kDemandsForAll || (such != 0 ? such : any) == 1) return true;
    uint64_t turn = peer.count + stall_.times;
    return passes_for(s, peer.rank, static_cast<uint32_t>(kFirstDraw + turn % kDraws)) != 0;
}

bool RankClock::may_act(const Slot& s) const { return serves(s) || (has_round(s) && is_needy()); }

bool RankClock::act(Slot& s) { return serves(s) || spend_round(s); }

// Like licences, later rounds go to half of the threads.
bool RankClock::has_round(const Slot& s) const {
    return s.rounds_used < stall_.rounds &&
           passes_for(s, kStallDrawer, static_cast<uint32_t>(stall_.times)) != 0;
}

bool RankClock::spend_round(Slot& s) {
    if (!has_round(s) || !is_needy()) return false;
    s.rounds_used = stall_.rounds;
    return true;
}

bool RankClock::spend_grant(Slot& s) {
    if (s.grants == 0) return false;
    s.grants--;
    return true;
}

// How many gates a thread may pass for this licence. One for everybody at first. Later ones go to half of the
// threads, another half each time, and let them pass more: otherwise a thread that nobody waits for could
// raise the licensor's targets as fast as the one it waits for gets on.
uint64_t RankClock::passes_for(const Slot& s, Rank licensor, uint32_t draw) const {
    if (draw <= kLicencesForAll) return 1;
    uint64_t what = uint64_t(uint32_t(licensor)) << 32 | draw;
    uint64_t thread = uint64_t(uint32_t(options_.me)) << 32 | uint32_t(s.index);
    uint64_t mixed = hash_of((hash_of(what) + thread) * kSpread1);
    return mixed >> kCoin & 1 ? draw : 0;
}

// ---- licences of others

void RankClock::apply_licence(Rank from, uint32_t credit) {
    if (!policy_.demands) return;  // the published rules know nothing of the kind
    Licensors::Licensor& licensor = licensors_.of(arena_, from);
    if (credit != 0 && credit <= licensor.credit) return;
    if (!licensor.active) licensors_.active++;
    licensor.active = true;
    if (credit == 0) return;  // for holders of locks: see may_access
    licensor.credit = credit;
    slots_.each([&](Slot& s) FERMATA_LOCKS_UNSEEN { s.grants += passes_for(s, from, credit); });
}

void RankClock::apply_revoke(Rank from) {
    for (Licensors::Licensor& licensor : licensors_.all)
        if (licensor.rank == from && licensor.active) {
            licensor.active = false;
            if (--licensors_.active == 0) drop_grants();
        }
}

void RankClock::drop_grants() {
    slots_.each([](Slot& s) { s.grants = 0; });
}

// ---- stalls

// The thread is inside MPI: blocked in a wait, or captive in a collective.
bool RankClock::in_mpi(int32_t index) const {
    if (index < 0 || index >= kMaxSlots) return false;
    const Slot* s = slots_.at[index].load(std::memory_order_relaxed);
    if (s && s->waits) return true;
    for (const Comm& c : comms_)
        if (c.last_thread.load(std::memory_order_relaxed) == index &&
            c.inside.load(std::memory_order_acquire) != 0)
            return true;
    return false;
}

// Something is owed and does not move. If the thread that should do it is outside MPI, it computes, or it
// waits for another thread of this rank, which may be parked. If it is inside, it has asked for what it
// needs; but which thread should do it is a guess, so that is only a reason to be patient.
void RankClock::look_for_stall(uint64_t now_ns) {
    if (!several_threads()) return;
    uint64_t stamp = gates_.passes;
    bool outside = false, somebody_known = true;
    for (const Comm& c : comms_) {
        Instance entered = c.entered.load(std::memory_order_acquire);
        if (entered >= c.target) continue;
        int32_t server = c.last_thread.load(std::memory_order_relaxed);
        stamp += entered;
        if (server == kNoThread) somebody_known = false;
        outside |= !in_mpi(server);
    }
    for (const Peer& peer : channel_targets_) {
        uint64_t sent = sent_total(peer.rank);
        if (sent >= peer.count) continue;
        bool inside = false;
        slots_.each([&](const Slot& s)
                        FERMATA_LOCKS_UNSEEN { inside |= answers(s, peer) && in_mpi(s.index); });
        stamp += sent;
        if (sent == 0) somebody_known = false;
        outside |= !inside;
    }
    if (stamp != stall_.stamp || stall_.since == 0) {
        stall_.stamp = stamp;
        stall_.since = moment(now_ns);
        return;
    }
    uint64_t delay = patience(somebody_known ? options_.stall_ns : options_.demand_delay_ns, stall_.times);
    if (!outside) delay *= kInsidePatience;
    if (!passed(now_ns, stall_.since, delay)) return;
    stall_.since = moment(now_ns);
    stall_.times++;
    stall_.rounds++;
    ring();
}

}  // namespace fermata::clock
