// The parts on their own: messages, the rank's books, node and root, and real threads at the gate.
#include "clock/clock.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <random>
#include <thread>

#include "clock/tree.h"

namespace fermata::clock {
namespace {

struct Memory {
    std::mutex mutex;
    std::vector<void*> blocks;
    ~Memory() {
        for (void* b : blocks) free(b);
    }
    static void* take(void* self, size_t bytes) {
        auto* m = static_cast<Memory*>(self);
        void* block = aligned_alloc(64, (bytes + 63) / 64 * 64);
        memset(block, 0, bytes);
        std::lock_guard guard(m->mutex);
        m->blocks.push_back(block);
        return block;
    }
    ChunkSource source() { return {this, take}; }
};

Environment quiet() {
    auto nothing = [](void*) {};
    return {nullptr, nothing, nothing, [](void*, std::atomic<uint32_t>*, uint32_t, uint32_t) {},
            nothing, nothing};
}

struct Rig {  // one rank of a job of `world`
    Memory memory;
    RankClock* clock;
    explicit Rig(Rank me, Rank world, Options options = {}) {
        options.me = me;
        options.world = world;
        clock = RankClock::create(options, quiet(), memory.source());
    }
    Slot& slot() { return clock->slot(0); }
    Comm* comm(uint64_t uid, std::vector<Rank> members) {
        return clock->register_comm(Uid{uid}, members.data(), int32_t(members.size()));
    }
    std::vector<Bytes> out() {
        std::vector<Bytes> all;
        uint8_t bytes[kMaxMessage];
        while (size_t size = clock->outbox(bytes, sizeof bytes)) all.emplace_back(bytes, bytes + size);
        return all;
    }
    bool in(const Bytes& m) { return clock->inbox(m.data(), m.size()); }
};

Bytes plain(Kind kind, Epoch epoch) {
    uint8_t b[8];
    Writer w(b, sizeof b);
    w.header(kind, epoch);
    return Bytes(b, b + w.size());
}

TEST(Rank, RefusesACheckpointWhenItHasLostCount) {
    auto targets = [](Rig& rig) {
        uint8_t b[64];
        Writer w(b, sizeof b);
        w.header(Kind::targets, 1).u32(1).u32(0).u32(0);
        const char* why = nullptr;
        rig.clock->inbox(b, w.size(), &why);
        return std::string(why ? why : "");
    };
    Rig fine(0, 2), threads(0, 2), targetless(0, 2), rounds(0, 2);
    Comm* comm = targetless.comm(7, {0, 1});
    for (Rig* rig : {&fine, &threads, &targetless, &rounds}) {
        rig->slot();
        ASSERT_TRUE(rig->in(plain(Kind::intent, 1)));
    }
    EXPECT_EQ(targets(fine), "");
    threads.slot().parked = 1;
    EXPECT_EQ(targets(threads), "the clock has lost count of its parked threads");
    comm->snap = 1;
    EXPECT_EQ(targets(targetless), "the clock has a target below what was begun");
    rounds.slot().rounds_used = 1;
    EXPECT_EQ(targets(rounds), "a thread has used a round of the clock that has not been");
}

// Root and ranks, directly connected; everything is delivered until nothing moves.
void settle(Root& root, std::vector<Rig*> ranks, uint64_t now = 1) {
    for (bool moved = true; moved;) {
        moved = false;
        for (size_t r = 0; r < ranks.size(); r++) {
            ranks[r]->clock->poll(now);
            for (Bytes& m : ranks[r]->out()) {
                ASSERT_TRUE(root.from_child(r, m, now)) << root.error();
                moved = true;
            }
        }
        Bytes m;
        while (root.next_down(&m)) {
            for (Rig* r : ranks) ASSERT_TRUE(r->in(m));
            moved = true;
        }
    }
}

TEST(Messages, every_truncation_and_every_flipped_header_is_refused) {
    uint8_t b[kMaxMessage];
    Writer w(b, sizeof b);
    Entry e;
    e.uid = Uid{7};
    e.target = 3;
    e.run_count = 2;
    w.header(Kind::raise, 5).entry(e).run({1, 2}).run({9, 1});
    ASSERT_TRUE(w.fits());
    auto parse = [&](const uint8_t* bytes, size_t size) {
        Reader r(bytes, size);
        Header h;
        Entry out;
        return r.header(&h) && r.entry(&out) && r.finished() && h.epoch == 5 && out.target == 3 &&
               out.names(2) && !out.names(3) && out.names(9);
    };
    EXPECT_TRUE(parse(b, w.size()));
    for (size_t size = 0; size < w.size(); size++) EXPECT_FALSE(parse(b, size)) << size;
    for (size_t i = 0; i < 4; i++)
        for (int bit = 0; bit < 8; bit++) {
            b[i] ^= uint8_t(1 << bit);
            Reader r(b, w.size());
            Header h;
            bool known_kind = r.header(&h);
            EXPECT_TRUE(!known_kind || (i == 1 && h.kind != Kind::raise)) << i << " " << bit;
            b[i] ^= uint8_t(1 << bit);
        }
}

TEST(Messages, nonsense_never_harms) {
    std::mt19937_64 random(42);
    Rig rig(0, 4);
    rig.comm(1, {0, 1, 2, 3});
    Root root(2);
    Node node(2);
    for (Epoch epoch = 1; epoch < 3000; epoch++) {
        root.begin(epoch, 0);
        Bytes intent = plain(Kind::intent, epoch);
        node.from_parent(intent);
        rig.in(intent);
        Bytes noise(8 + random() % 200);
        for (uint8_t& byte : noise) byte = uint8_t(random() % 3 ? 0 : random());
        Writer w(noise.data(), noise.size());
        const Kind kinds[] = {Kind::targets, Kind::news, Kind::report, Kind::raise, Kind::demand, Kind::safe};
        w.header(kinds[random() % 6], epoch);
        rig.clock->inbox(noise.data(), noise.size());
        node.from_child(random() % 3, noise);
        node.from_parent(noise);
        root.from_child(random() % 3, noise, 0);
        rig.out();
        Bytes m;
        while (node.next_up(&m) || node.next_down(&m) || root.next_down(&m)) {
        }
    }
}

TEST(Rank, counts_and_reports) {
    Rig rig(0, 2);
    Comm* a = rig.comm(1, {0, 1});
    Comm* b = rig.comm(2, {0, 1});
    for (int i = 0; i < 3; i++) {
        EXPECT_EQ(rig.clock->enter(*a, rig.slot()), Instance(i + 1));
        rig.clock->leave(*a, rig.slot());
    }
    Instance k = rig.clock->start(*b, rig.slot());
    EXPECT_EQ(k, 1u);
    EXPECT_FALSE(rig.clock->pending());
    ASSERT_TRUE(rig.in(plain(Kind::intent, 1)));
    EXPECT_TRUE(rig.clock->pending());
    EXPECT_EQ(rig.clock->target(*a), 3u);
    EXPECT_EQ(rig.clock->target(*b), 0u);  // started, but nobody was told: does not oblige
    EXPECT_FALSE(rig.clock->try_tell(*b, rig.slot(), k));
    auto out = rig.out();
    ASSERT_EQ(out.size(), 1u);
    Reader r(out[0].data(), out[0].size());
    Header h;
    ASSERT_TRUE(r.header(&h));
    EXPECT_EQ(h.kind, Kind::report);
    EXPECT_EQ(r.u32(), 1u);
    EXPECT_EQ(r.u32(), 2u);
    rig.clock->resume();
    EXPECT_TRUE(rig.clock->try_tell(*b, rig.slot(), k));
    // A stale message of the closed epoch changes nothing; the same number comes back only after a restart.
    ASSERT_TRUE(rig.in(plain(Kind::intent, 1)));
    EXPECT_FALSE(rig.clock->pending());
    rig.clock->restart();
    ASSERT_TRUE(rig.in(plain(Kind::intent, 1)));
    EXPECT_TRUE(rig.clock->pending());
    EXPECT_EQ(rig.clock->target(*b), 1u);
}

TEST(Rank, another_threads_unapproved_store_is_no_approval) {
    Options options;
    Rig rig(0, 2, options);
    rig.clock->set_thread_multiple(true);
    Comm* c = rig.comm(1, {0, 1});
    Slot& one = rig.clock->slot(0);
    Slot& two = rig.clock->slot(1);
    Instance first = rig.clock->start(*c, one), second = rig.clock->start(*c, one);
    ASSERT_TRUE(rig.in(plain(Kind::intent, 1)));
    // Thread two is about to tell the second instance and has stored it; thread one comes with the first.
    rig.clock->note_told(*c, second);
    EXPECT_FALSE(rig.clock->try_tell(*c, one, first));
    EXPECT_FALSE(rig.clock->try_tell(*c, two, second));
    rig.clock->resume();
    EXPECT_TRUE(rig.clock->try_tell(*c, one, first));
}

TEST(Rank, group_call_makes_the_other_members_needy) {
    // Every second rank of a large world: many runs, several messages.
    constexpr Rank world = 20000;
    std::vector<Rank> members;
    for (Rank r = 0; r < world; r += 2) members.push_back(r);
    Rig caller(0, world), other(19998, world), stranger(1, world);
    Uid uid = pseudo_uid(Uid{1}, 1234, 5);
    Comm* c = caller.clock->register_group_call(uid, members.data(), int32_t(members.size()));
    caller.clock->enter(*c, caller.slot());
    Root root(3);
    root.begin(1, 0);
    settle(root, {&caller, &other, &stranger});
    EXPECT_FALSE(root.declared());
    EXPECT_FALSE(caller.clock->needy());
    EXPECT_TRUE(other.clock->needy());
    EXPECT_FALSE(stranger.clock->needy());
    char text[500];
    EXPECT_GT(other.clock->diagnosis(text, sizeof text), 20u);
    Comm* same = other.clock->register_group_call(uid, members.data(), int32_t(members.size()));
    other.clock->enter(*same, other.slot());
    EXPECT_FALSE(other.clock->needy());
    caller.clock->leave(*c, caller.slot());
    other.clock->leave(*same, other.slot());
    settle(root, {&caller, &other, &stranger});
    EXPECT_TRUE(root.declared());
}

TEST(Rank, a_communicator_made_during_the_checkpoint_knows_its_target) {
    Rig early(0, 2), late(1, 2);
    Comm* w0 = early.comm(1, {0, 1});
    Comm* w1 = late.comm(1, {0, 1});
    early.clock->enter(*w0, early.slot());
    late.clock->enter(*w1, late.slot());
    Comm* child =
        early.comm(2, {0, 1});  // early is out of MPI_Comm_dup and already inside the child's first call
    early.clock->leave(*w0, early.slot());
    early.clock->enter(*child, early.slot());
    Root root(2);
    root.begin(1, 0);
    settle(root, {&early, &late});
    EXPECT_FALSE(root.declared());
    Comm* same = late.comm(2, {0, 1});
    EXPECT_TRUE(late.clock->needy());
    late.clock->leave(*w1, late.slot());
    settle(root, {&early, &late});
    EXPECT_FALSE(root.declared());
    late.clock->enter(*same, late.slot());
    late.clock->leave(*same, late.slot());
    early.clock->leave(*child, early.slot());
    settle(root, {&early, &late});
    EXPECT_TRUE(root.declared());
    EXPECT_TRUE(early.clock->frozen() && late.clock->frozen());
}

TEST(Rank, many_communicators_and_their_end) {
    Rig rig(0, 2);
    std::vector<Comm*> comms;
    for (uint64_t uid = 1; uid <= 3000; uid++) comms.push_back(rig.comm(uid, {0, 1}));
    for (Comm* c : comms) rig.clock->start(*c, rig.slot());
    for (uint64_t uid = 1; uid <= 3000; uid++) EXPECT_EQ(rig.clock->find(Uid{uid}), comms[uid - 1]);
    ASSERT_TRUE(rig.in(plain(Kind::intent, 1)));
    EXPECT_GT(rig.out().size(), 3u);  // the report travels in parts
    for (uint64_t uid = 1; uid <= 3000; uid += 2) rig.clock->unregister_comm(comms[uid - 1]);
    for (uint64_t uid = 1; uid <= 3000; uid++)
        EXPECT_EQ(rig.clock->find(Uid{uid}), uid % 2 ? nullptr : comms[uid - 1]);
}

TEST(Rank, who_holds_a_lock_goes_on_for_the_one_who_waits_for_it) {
    // Rank 0 holds a lock and computes, rank 1 waits for it inside the library, rank 2 is about to ask for
    // one.
    Rig holder(0, 3), waiter(1, 3), third(2, 3);
    waiter.clock->enter_access(waiter.slot(), false);
    Root root(3);
    root.begin(1, 0);
    settle(root, {&holder, &waiter, &third}, 1);
    EXPECT_FALSE(root.declared());
    // The holder has said that it is safe: no step without news. A new lock would have to wait anyway.
    EXPECT_FALSE(holder.clock->access_step(holder.slot(), true));
    EXPECT_FALSE(third.clock->access_step(third.slot(), false));
    char text[500];
    std::string_view said(text, waiter.clock->diagnosis(text, sizeof text));
    EXPECT_NE(said.find("is in a one-sided call"), said.npos) << said;

    settle(root, {&holder, &waiter, &third}, 10'000'000);
    EXPECT_FALSE(root.declared());
    EXPECT_TRUE(holder.clock->access_step(holder.slot(), true));
    EXPECT_FALSE(third.clock->access_step(third.slot(), false));
    holder.clock->leave_access(holder.slot());
    settle(root, {&holder, &waiter, &third}, 10'000'001);
    EXPECT_FALSE(root.declared());  // the waiter has its lock, but is not out of its call yet
    EXPECT_TRUE(holder.clock->access_step(holder.slot(), true));
    waiter.clock->leave_access(waiter.slot());
    settle(root, {&holder, &waiter, &third}, 10'000'002);
    EXPECT_FALSE(root.declared());  // the holder is in another one
    holder.clock->leave_access(holder.slot());
    settle(root, {&holder, &waiter, &third}, 10'000'003);
    EXPECT_TRUE(root.declared());
    for (Rig* rig : {&holder, &waiter, &third})
        for (bool holds : {true, false}) EXPECT_FALSE(rig->clock->access_step(rig->slot(), holds));
    for (Rig* rig : {&holder, &waiter, &third}) {
        rig->clock->resume();
        EXPECT_TRUE(rig->clock->access_step(rig->slot(), false));
    }
}

TEST(Rank, who_is_needed_takes_a_lock_on_its_way) {
    // Rank 0 owes a collective, and wants a lock before it.
    Rig late(0, 2), early(1, 2);
    Comm* a0 = late.comm(1, {0, 1});
    Comm* a1 = early.comm(1, {0, 1});
    early.clock->enter(*a1, early.slot());
    Root root(2);
    root.begin(1, 0);
    settle(root, {&late, &early}, 1);
    EXPECT_TRUE(late.clock->access_step(late.slot(), false));
    late.clock->leave_access(late.slot());
    late.clock->enter(*a0, late.slot());
    late.clock->leave(*a0, late.slot());
    early.clock->leave(*a1, early.slot());
    EXPECT_FALSE(late.clock->access_step(late.slot(), false));
    settle(root, {&late, &early}, 2);
    EXPECT_TRUE(root.declared());
}

TEST(Tree, settled_rows_stay_below) {
    Rig a(0, 4), b(1, 4);
    Comm* ca = a.comm(5, {0, 1});
    Comm* cb = b.comm(5, {0, 1});
    for (auto [rig, comm] : {std::pair{&a, ca}, std::pair{&b, cb}}) {
        rig->clock->enter(*comm, rig->slot());
        rig->clock->leave(*comm, rig->slot());
    }
    Node node(2);
    node.from_parent(plain(Kind::intent, 1));
    Bytes m;
    ASSERT_TRUE(node.next_down(&m));
    for (auto [i, rig] : {std::pair{0, &a}, std::pair{1, &b}}) {
        ASSERT_TRUE(rig->in(m));
        for (Bytes& up : rig->out()) ASSERT_TRUE(node.from_child(size_t(i), up)) << node.error();
    }
    ASSERT_TRUE(node.next_up(&m));
    EXPECT_EQ(m.size(), kHeaderBytes + kPartBytes);  // nothing left to say
}

// Equal entries, unequal obligations: the member that was told less must learn the target, or it would issue
// again at restart what another one has been told is complete.
TEST(Tree, unequal_obligations_are_not_settled) {
    Rig a(0, 2), b(1, 2);
    Comm* ca = a.comm(5, {0, 1});
    Comm* cb = b.comm(5, {0, 1});
    Instance k = a.clock->start(*ca, a.slot());
    b.clock->start(*cb, b.slot());
    a.clock->tell(*ca, a.slot(), k);
    Root root(2);
    root.begin(1, 0);
    settle(root, {&a, &b});
    ASSERT_TRUE(root.declared());
    EXPECT_EQ(a.clock->target(*ca), 1u);
    EXPECT_EQ(b.clock->target(*cb), 1u);
}

// One rank of two behind a node has sent synchronously: both, and the root, know it with the targets; none in
// an epoch before.
TEST(Tree, synchronous_sends_are_known_with_the_targets) {
    Rig a(0, 2), b(1, 2);
    Node node(2);
    Root root(1);
    for (Epoch epoch : {1u, 2u}) {
        if (epoch == 2) a.clock->note_synchronous_sends();
        root.begin(epoch, 0);
        Bytes m;
        for (int turn = 0; turn < 4; turn++) {
            while (root.next_down(&m)) ASSERT_TRUE(node.from_parent(m)) << node.error();
            while (node.next_down(&m)) ASSERT_TRUE(a.in(m) && b.in(m));
            for (auto [i, rig] : {std::pair{0, &a}, std::pair{1, &b}})
                for (Bytes& up : rig->out()) ASSERT_TRUE(node.from_child(size_t(i), up)) << node.error();
            while (node.next_up(&m)) ASSERT_TRUE(root.from_child(0, m, 0)) << root.error();
        }
        EXPECT_TRUE(a.clock->known() && b.clock->known());
        EXPECT_EQ(root.synchronous_sends(), epoch == 2);
        EXPECT_EQ(a.clock->job_sends_synchronously(), epoch == 2);
        EXPECT_EQ(b.clock->job_sends_synchronously(), epoch == 2);
        a.clock->resume();
        b.clock->resume();
        EXPECT_FALSE(b.clock->job_sends_synchronously());
    }
}

TEST(Tree, last_resort_opens_gates_for_a_moment) {
    // Rank 1 is needed but waits for something outside MPI that parked rank 0 would do after its next
    // collective.
    Rig zero(0, 3), one(1, 3), two(2, 3);
    Comm* a1 = one.comm(1, {1, 2});
    Comm* a2 = two.comm(1, {1, 2});
    Comm* b0 = zero.comm(2, {0});
    two.clock->enter(*a2, two.slot());
    RootOptions options;
    options.stuck_ns = 1000;
    options.licence_ns = 100;
    Root root(3, options);
    root.begin(1, 1);
    settle(root, {&zero, &one, &two}, 1);
    GateSite site;
    Instance k = zero.clock->mark_entered(*b0, zero.slot().index);
    EXPECT_EQ(zero.clock->gate_step(*b0, zero.slot(), k, Gate::blocking, site), Verdict::wait);
    root.poll(500);
    settle(root, {&zero, &one, &two}, 500);
    EXPECT_EQ(root.last_resorts(), 0u);
    root.poll(5000);
    EXPECT_EQ(root.last_resorts(), 1u);
    settle(root, {&zero, &one, &two}, 5000);
    EXPECT_EQ(zero.clock->gate_step(*b0, zero.slot(), k, Gate::blocking, site), Verdict::pass);
    zero.clock->mark_left(*b0);
    one.clock->enter(*a1, one.slot());
    one.clock->leave(*a1, one.slot());
    two.clock->leave(*a2, two.slot());
    settle(root, {&zero, &one, &two}, 5001);
    EXPECT_FALSE(root.declared());  // the licence is still out
    root.poll(6000);
    settle(root, {&zero, &one, &two}, 6000);
    EXPECT_TRUE(root.declared());
}

// Real threads, real futexes, real membarrier: ranks run barriers as fast as they can, one communicator per
// thread; checkpoints come in between, and at each declared state nobody is inside and all have begun the
// same number.
class Threads : public testing::TestWithParam<int> {};

TEST_P(Threads, checkpoints_under_running_threads) {
    if (!process_fence()) GTEST_SKIP() << "no membarrier in this kernel or sandbox";
    constexpr size_t kRanks = 3, kMost = 2;
    constexpr Epoch kCheckpoints = 25;
    const size_t per_rank = size_t(GetParam());
    struct Team {  // the threads of one communicator
        std::array<std::atomic<uint64_t>, kRanks> arrived{};
        std::array<std::atomic<int>, kRanks> inside{};
        std::atomic<uint64_t> last{UINT64_MAX};  // all stop after this instance
        std::array<Comm*, kRanks> comms{};
    };
    Memory memory;
    std::array<Team, kMost> teams;
    std::atomic<bool> stop{false};
    std::array<RankClock*, kRanks> clocks;
    Environment environment = quiet();
    environment.nap = [](void*, std::atomic<uint32_t>* bell, uint32_t seen, uint32_t us) {
        futex_nap(bell, seen, us);
    };
    environment.fence = [](void*) { process_fence(); };
    const Rank members[kRanks] = {0, 1, 2};
    for (size_t r = 0; r < kRanks; r++) {
        Options options;
        options.me = Rank(r);
        options.world = kRanks;
        clocks[r] = RankClock::create(options, environment, memory.source());
        clocks[r]->set_thread_multiple(per_rank > 1);
        for (size_t t = 0; t < per_rank; t++)
            teams[t].comms[r] = clocks[r]->register_comm(Uid{t + 1}, members, kRanks);
    }
    std::vector<std::thread> threads;
    for (size_t r = 0; r < kRanks; r++)
        for (size_t t = 0; t < per_rank; t++)
            threads.emplace_back([&, r, t] {
                RankClock& clock = *clocks[r];
                Slot& slot = clock.slot(int(t));
                Team& team = teams[t];
                Comm& c = *team.comms[r];
                for (uint64_t n = 1; n <= team.last.load(); n++) {
                    Instance k = clock.enter(c, slot);
                    team.inside[r] = 1;
                    team.arrived[r] = k;
                    for (auto& peer : team.arrived)
                        while (peer.load() < k) std::this_thread::yield();
                    // Rank 0 decides before anybody can leave the instance it names.
                    if (r == 0 && stop) team.last = std::min<uint64_t>(team.last, k + 2);
                    team.inside[r] = 0;
                    clock.leave(c, slot);
                }
            });
    Root root(kRanks);
    auto now = [] {
        return uint64_t(std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1));
    };
    uint64_t give_up = now() + 60'000'000'000;
    uint8_t bytes[kMaxMessage];
    for (Epoch epoch = 1; epoch <= kCheckpoints; epoch++) {
        std::this_thread::sleep_for(std::chrono::microseconds(200 + 37 * epoch));
        root.begin(epoch, now());
        Bytes m;
        bool frozen = false, understood = true;
        while (!frozen && now() < give_up) {
            while (root.next_down(&m)) {
                for (RankClock* clock : clocks) understood &= clock->inbox(m.data(), m.size());
                frozen = m[1] == uint8_t(Kind::freeze);
            }
            for (size_t r = 0; r < kRanks; r++) {
                clocks[r]->poll(now());
                while (size_t size = clocks[r]->outbox(bytes, sizeof bytes))
                    understood &= root.from_child(r, ByteSpan(bytes, size), now());
            }
            std::this_thread::yield();
        }
        EXPECT_TRUE(understood) << root.error();
        EXPECT_TRUE(root.declared());
        for (size_t t = 0; t < per_rank; t++) {
            uint64_t begun = teams[t].arrived[0];
            for (size_t r = 0; r < kRanks; r++) {
                EXPECT_EQ(teams[t].inside[r], 0);
                EXPECT_EQ(teams[t].arrived[r], begun);
                EXPECT_EQ(clocks[r]->target(*teams[t].comms[r]), begun);
            }
        }
        root.end();
        for (RankClock* clock : clocks) clock->resume();
        if (HasFailure()) break;
    }
    stop = true;
    for (std::thread& t : threads) t.join();
}

INSTANTIATE_TEST_SUITE_P(PerRank, Threads, testing::Values(1, 2));

}  // namespace
}  // namespace fermata::clock
