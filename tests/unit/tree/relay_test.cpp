// A tree of relays in one process: connections that keep their order and may break, daemons that die at any
// moment, ranks that answer. Whatever happens in whatever order, every daemon that lives hears how a
// checkpoint ended, once, and the top counts every answer once.
#include "tree/relay.h"

#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <memory>
#include <random>
#include <set>
#include <utility>

#include "tree/members.h"
#include "wire/frame.h"

namespace fermata::tree {
namespace {

using Random = std::mt19937;

TEST(Shape, LevelsFillEvenly) {
    Shape two(2);
    std::vector<int> parents;
    for (int node = 0; node < 14; ++node) parents.push_back(two.parent(node));
    EXPECT_EQ(parents, (std::vector<int>{-1, -1, 0, 1, 0, 1, 2, 3, 4, 5, 2, 3, 4, 5}));
    EXPECT_EQ(two.ancestors(13), (std::vector<int>{5, 1}));
    Shape one(1);
    EXPECT_EQ(one.parent(5), 4);
    for (size_t radix : {1, 2, 3, 64}) {
        Shape shape(radix);
        std::map<int, size_t> children;
        for (int node = 0; node < 3000; ++node) {
            ASSERT_LT(shape.parent(node), node);
            ASSERT_LE(++children[shape.parent(node)], radix);
        }
    }
    EXPECT_EQ(Shape(64).ancestors(63).size(), 0u);
    EXPECT_EQ(Shape(64).ancestors(64).size(), 1u);
    EXPECT_EQ(Shape(64).ancestors(64 + 4096).size(), 2u);
}

TEST(Members, WhoLeavesMayComeBackUntilItIsLost) {
    Members members(1, {100, 1000});
    auto arrive = [&](const char* addresses) {
        NodeInfo info;
        info.addresses = addresses;
        return members.arrive(info, 0);
    };
    EXPECT_EQ(arrive("a"), 0);
    EXPECT_FALSE(members.whole());  // not before it has answered
    EXPECT_TRUE(members.here(0));
    EXPECT_TRUE(members.whole());
    EXPECT_EQ(arrive("b"), 1);
    EXPECT_EQ(arrive("b"), 1);  // the root's answer was lost
    EXPECT_EQ(members.way(1).at(0).node, 0);
    EXPECT_EQ(arrive("c"), 2);
    EXPECT_EQ(members.way(2).size(), 2u);  // the parent is coming, too
    EXPECT_TRUE(members.here(1));
    EXPECT_TRUE(members.here(2));
    EXPECT_TRUE(members.whole());
    // The one in the middle dies: the last one comes to its grandparent.
    members.left(1, false, 50);
    members.call(50);
    EXPECT_FALSE(members.whole());
    EXPECT_TRUE(members.here(0));
    EXPECT_TRUE(members.here(2));
    EXPECT_EQ(members.way(2).size(), 1u);
    EXPECT_TRUE(members.expire(1000).empty());
    EXPECT_EQ(members.rest(1000, 5000), 50);
    auto lost = members.expire(1050);
    ASSERT_EQ(lost.size(), 1u);
    EXPECT_EQ(lost[0].first, 1);
    EXPECT_TRUE(members.whole());
    EXPECT_TRUE(members.here(1));  // it had only stood still
    EXPECT_TRUE(members.whole());
    EXPECT_EQ(members.all().size(), 3u);
    EXPECT_FALSE(members.here(9));
    // Who does not answer is lost, too, after a longer time.
    members.call(2000);
    EXPECT_TRUE(members.expire(12999).empty());
    EXPECT_EQ(members.expire(13000).size(), 3u);
}

TEST(RollCall, EachAnswersOnce) {
    RollCall calls;
    calls.begin(1);
    calls.came(5, 0);
    EXPECT_TRUE(calls.call(5));
    EXPECT_FALSE(calls.call(5));
    EXPECT_FALSE(calls.is_here(5));
    wire::Group group{7, "h", 9, "openmpi", "1", {}, {{3, 2}}, {11, 12}};
    EXPECT_FALSE(calls.here(5, {2, {5}, {}}));
    EXPECT_TRUE(calls.here(5, {1, {5, 7}, {group}}));
    EXPECT_EQ(calls.way_to(7), 5);
    EXPECT_EQ(calls.ranks(), 2u);
    // What is said again changes nothing.
    for (int turn = 0; turn < 2; ++turn) {
        calls.take_ranks(5, Ranks(4));
        EXPECT_EQ(calls.children().at(5), 1u);
    }
    EXPECT_EQ(calls.ranks(), 1u);
    for (int turn = 0; turn < 2; ++turn) calls.add_ranks(5, {group});
    EXPECT_EQ(calls.ranks(), 2u);
    calls.came(6, 1);  // it has answered elsewhere
    EXPECT_FALSE(calls.call(6));
    calls.begin(2);
    EXPECT_EQ(calls.way_to(7), -1);
    EXPECT_EQ(calls.ranks(), 0u);
    EXPECT_TRUE(calls.call(6));
    EXPECT_TRUE(calls.call(5));
    EXPECT_FALSE(calls.here(5, {1, {5}, {}}));  // was still on its way
    EXPECT_TRUE(calls.here(5, {2, {5}, {group}}));
    calls.left(5);
    EXPECT_EQ(calls.ranks(), 0u);
    EXPECT_EQ(calls.way_to(5), -1);
}

// Who was between two parents hears what it has missed and somebody waits for.
TEST(Orders, WhatIsWaitedForLasts) {
    Orders orders;
    const std::vector<wire::Message> lasting = {wire::AskCopies{1, {Generation(3)}, {}},
                                                wire::Chosen{Generation(3), "/d", "seal", true, ""},
                                                wire::Go{},
                                                wire::KeepCopies{{Generation(4)}, {}},
                                                wire::Flush{1, {Generation(4)}, "/d", 0, {}},
                                                wire::Leave{2},
                                                wire::Depart{}};
    uint64_t number = 0;
    for (const wire::Message& message : lasting) orders.add({++number, wire::encode(message)});
    orders.add({++number, wire::encode(wire::MakeRoom{2, Generation(5)})});
    EXPECT_EQ(orders.newest(), number);
    auto missed = orders.since(2);
    ASSERT_EQ(missed.size(), lasting.size() - 2);
    for (size_t i = 0; i < missed.size(); ++i)
        EXPECT_EQ(wire::unwrapped(missed[i].frame)->index(), lasting[i + 2].index());
}

TEST(Relay, ARankThatNoJobHasIsPassedOver) {
    Relay relay;
    relay.own(wire::Joined{{{-1, "h", 2, "openmpi", "1", {}, {{kMostRanks, 1}}, {7}}}});
    relay.own(wire::Joined{{{-1, "h", 2, "openmpi", "1", {}, {{0, 2}}, {8, 9}}}});
    relay.own(wire::Gone{-1, {{0, 1}}, false, 8, "h", 9});
    relay.roll({1});
    const auto out = relay.take_out();
    ASSERT_FALSE(out.empty());
    const auto* here = std::get_if<wire::Here>(&out.front().message);
    ASSERT_TRUE(here && here->groups.size() == 2);
    EXPECT_EQ(here->groups[1].pids, std::vector<int32_t>{9});
}

// The loss of a rank is said again at every call of the roll, the rank is gone once.
// A renewal has given it another one, or its copy plays it.
TEST(Relay, ARankIsSaidAgainWithTheProcessThatPlaysIt) {
    Relay relay;
    relay.placed({4, 0, {}, 0, 0});
    relay.own(wire::Joined{{{-1, "h", 3, "mpich", "", {}, {{0, 2}}, {10, 11}}}});
    relay.own(wire::Moved{0, 20, "mpich", ""});
    relay.own(wire::Promoted{1, 31, "h", "was killed"});
    relay.own(wire::Promoted{2, 32, "h", "was killed"});  // of nobody here
    relay.take_out();
    relay.roll({1});
    for (const Relay::Out& out : relay.take_out())
        if (auto* here = std::get_if<wire::Here>(&out.message)) {
            EXPECT_EQ(here->groups.at(0).pids, (std::vector<int32_t>{20, 31}));
            return;
        }
    FAIL() << "it does not answer";
}

TEST(Relay, ALossThatIsSaidAgainIsCountedOnce) {
    Relay relay;
    relay.placed({1, 0, {}, 5000, 30000});
    relay.roll({1});
    relay.child({2, 0, 0});
    wire::Group group{2, "h", 9, "openmpi", "1", {}, {{3, 4}}, {1, 2, 3, 4}};
    relay.from_child(2, wire::Here{1, {2}, {group}});
    EXPECT_EQ(relay.ranks_below(), 4u);
    const wire::Gone gone{2, {{3, 1}}, false, 1, "h", 9};
    relay.from_child(2, gone);
    EXPECT_EQ(relay.ranks_below(), 3u);
    relay.roll({2});
    group.ranks = {{4, 3}};
    group.pids = {2, 3, 4};
    relay.from_child(2, wire::Here{2, {2}, {group}});
    relay.from_child(2, gone);
    EXPECT_EQ(relay.ranks_below(), 3u);
}

class World {
  public:
    World(unsigned seed, int daemons, size_t radix)
        : random_(seed), shape_(radix), daemons_(static_cast<size_t>(daemons) + 1) {
        // Daemon 0 stands for the root: it is never killed. The others are numbered as the root would.
        for (int i = 0; i <= daemons; ++i) {
            Daemon& one = at(i);
            wire::Parent parent;
            parent.node = i;
            one.relay.placed(parent);
            one.ranks = i == 0 ? 0 : 1 + random_() % 3;
            one.first = i * 3;
            std::vector<int32_t> pids(one.ranks, 1);
            if (one.ranks > 0)
                one.relay.own(
                    wire::Joined{{{-1, "h", 99, "openmpi", "1", {}, {{one.first, one.ranks}}, pids}}});
            if (i == 0) one.relay.roll({1});
        }
        for (int i = 1; i <= daemons; ++i) attach(i);
    }

    // One thing happens.
    void step(bool faults) {
        switch (random_() % (faults ? 40 : 38)) {
            case 39:
                return kill(1 + static_cast<int>(random_() % (daemons_.size() - 1)));
            case 38:
                return cut(1 + static_cast<int>(random_() % (daemons_.size() - 1)));
            case 37:
                return answer();
            default:
                deliver();
        }
        for (int i = 1; i < size(); ++i)
            if (at(i).alive && !at(i).up && random_() % 4 == 0) attach(i);
    }
    void order(const wire::Message& message) {
        wire::Order order{++orders_, wire::encode(message)};
        auto inner = top().order(order);
        ASSERT_TRUE(inner);
        top().tally().ask(*inner);
        flush(0);
    }
    // Until nothing moves: those who stand nowhere have found a parent, and all is said.
    void settle() {
        for (int quiet = 0; quiet < 3;) {
            bool moved = false;
            for (int i = 1; i < size(); ++i) {
                Daemon& one = at(i);
                if (!one.alive) continue;
                if (!one.up) attach(i), moved = true;
                one.answer_all();
                hand_up(i, true);
            }
            while (deliver()) moved = true;
            quiet = moved ? 0 : quiet + 1;
        }
    }
    uint32_t alive_ranks() {
        uint32_t sum = 0;
        for (int i = 1; i < size(); ++i) sum += at(i).alive ? at(i).ranks : 0;
        return sum;
    }
    uint32_t all_ranks() {
        uint32_t sum = 0;
        for (int i = 1; i < size(); ++i) sum += at(i).ranks;
        return sum;
    }
    Relay& top() { return at(0).relay; }
    uint64_t orders() const { return orders_; }

    // The top never counts more than was ever said.
    void check() {
        uint32_t frozen = 0, resumed = 0, restored = 0;
        for (int i = 1; i < size(); ++i)
            frozen += at(i).frozen, resumed += at(i).resumed, restored += at(i).restored;
        const auto& top_says = top().tally().answers();
        EXPECT_LE(top_says.frozen.ranks, frozen);
        EXPECT_LE(top_says.resumed.ranks, resumed);
        EXPECT_LE(top_says.restored.ranks, restored);
        std::set<int32_t> sizes;
        top().tally().each_size([&](int32_t rank, uint64_t) {
            EXPECT_TRUE(sizes.insert(rank).second) << "rank " << rank << " twice";
            const Daemon& one = at(rank / 3);
            EXPECT_LT(static_cast<uint32_t>(rank - one.first), one.sized)
                << "rank " << rank << " has said nothing";
        });
        EXPECT_EQ(top_says.sized, sizes.size());
        EXPECT_LE(top().ranks_below(), all_ranks());
    }
    // Whoever lives has answered the newest call, with its ranks.
    void all_here() {
        std::set<int> alive;
        for (int i = 1; i < size(); ++i)
            if (at(i).alive) alive.insert(i);
        EXPECT_EQ(here_, alive);
        EXPECT_EQ(top().ranks_below(), alive_ranks());
    }
    void print() {
        for (int i = 0; i < size(); ++i) {
            Daemon& one = at(i);
            if (!one.alive) continue;
            printf("%d below %d: %u ranks, counts %u; children", i, one.up ? one.up->parent : -1, one.ranks,
                   one.relay.tally().answers().restored.ranks);
            for (auto& [child, ranks] : one.relay.children()) printf(" %d (%u ranks)", child, ranks);
            printf("\n");
        }
    }
    void all_heard(const char* last) {
        for (int i = 1; i < size(); ++i)
            EXPECT_TRUE(!at(i).alive || at(i).last == last) << "daemon " << i << " heard " << at(i).last;
    }

  private:
    struct Link {
        int child, parent;
        std::deque<wire::Message> up, down;
        bool known = false;                     // the child has said who it is
        bool ended = false;                     // at one side
        bool broken = false;                    // what is sent from now on is lost
        bool cut_up = false, cut_down = false;  // nothing more comes; what was sent may still arrive
    };
    struct Daemon {
        Relay relay;
        bool alive = true;
        uint32_t ranks = 0, frozen = 0, sized = 0, resumed = 0, restored = 0;
        int32_t first = 0;
        bool freezing = false, sizing = false, resuming = false;
        uint32_t epoch = 0;
        uint64_t newest = 0;
        std::string last;
        std::shared_ptr<Link> up;

        void hear(const wire::Message& message) {
            relay.tally().ask(message);
            last = wire::name_of(message);
            if (auto* m = std::get_if<wire::Freeze>(&message)) freezing = true, frozen = 0, epoch = m->epoch;
            if (auto* m = std::get_if<wire::Cancel>(&message))
                resuming = true, resumed = 0, freezing = sizing = false, epoch = m->epoch;
            if (auto* m = std::get_if<wire::Save>(&message)) sizing = true, sized = 0, epoch = m->epoch;
        }
        bool answer_one() {
            if (freezing && frozen < ranks) {
                relay.tally().take(static_cast<int>(frozen++), wire::Frozen{epoch, 10});
            } else if (sizing && sized < ranks) {
                const int at = static_cast<int>(sized++);
                relay.tally().take(at, wire::Sized{epoch, first + at, 7});
            } else if (resuming && resumed < ranks) {
                relay.tally().take(static_cast<int>(resumed++), wire::Resumed{epoch});
            } else if (restored < ranks) {
                relay.tally().take(static_cast<int>(restored++), wire::Restored{});
            } else {
                return false;
            }
            return true;
        }
        void answer_all() {
            while (answer_one()) {
            }
        }
    };
    int size() const { return static_cast<int>(daemons_.size()); }
    Daemon& at(int i) { return daemons_[static_cast<size_t>(i)]; }

    // The nearest living ancestor, or one further up: it may have been slow.
    void attach(int i) {
        std::vector<int> ways = shape_.ancestors(i - 1);
        for (int& way : ways) ++way;
        ways.push_back(0);
        std::erase_if(ways, [&](int way) { return !at(way).alive; });
        size_t which = random_() % 4 == 0 ? random_() % ways.size() : 0;
        auto link = std::make_shared<Link>(Link{i, ways[which], {}, {}, false, false, false, false, false});
        links_.push_back(link);
        at(i).up = link;
        at(i).relay.above();
        flush(i);
    }
    void flush(int i) {
        for (Relay::Out& out : at(i).relay.take_out()) {
            if (out.to == Relay::kUp) {
                if (i == 0) at_root(out.message);
                if (at(i).up && !at(i).up->broken) at(i).up->up.push_back(out.message);
                continue;
            }
            for (auto& link : links_)
                if (link->parent == i && link->child == out.to && link->known && !link->broken)
                    link->down.push_back(out.message);
        }
    }
    // What the root does with it.
    void at_root(const wire::Message& message) {
        if (auto* here = std::get_if<wire::Here>(&message)) {
            EXPECT_EQ(here->roll, calls_);
            here_.insert(here->nodes.begin(), here->nodes.end());
            here_.erase(0);
        } else if (auto* missing = std::get_if<wire::Missing>(&message); missing && missing->roll == calls_) {
            here_.clear();
            top().roll({++calls_});
            flush(0);
        }
    }
    void hand_up(int i, bool time) {
        at(i).relay.hand_up(at(i).ranks, time);
        flush(i);
    }
    void answer() {
        int i = 1 + static_cast<int>(random_() % (daemons_.size() - 1));
        if (at(i).alive && at(i).answer_one()) hand_up(i, random_() % 2);
    }
    void kill(int i) {
        Daemon& dead = at(i);
        if (!dead.alive || random_() % 3) return;
        dead.alive = false;
        for (auto& link : links_) {
            if (link->child == i) cut(*link);
            if (link->parent == i) cut(*link);
        }
        dead.up.reset();
    }
    void cut(int i) {
        if (at(i).alive && at(i).up) cut(*at(i).up);
    }
    // Of what is on its way some arrives, then comes the end.
    void cut(Link& link) {
        auto shorten = [&](std::deque<wire::Message>& queue) {
            queue.resize(queue.empty() ? 0 : random_() % (queue.size() + 1));
        };
        if (!link.broken) shorten(link.up), shorten(link.down);
        if (!link.broken) link.cut_up = link.cut_down = link.broken = true;
    }
    bool deliver() {
        std::vector<std::shared_ptr<Link>> some;
        for (auto& link : links_)
            if (!link->up.empty() || !link->down.empty() || link->cut_up || link->cut_down)
                some.push_back(link);
        if (some.empty()) return false;
        auto link = some[random_() % some.size()];
        if (random_() % 2)
            upwards(link);
        else
            downwards(link);
        if (!link->cut_up && !link->cut_down && link->ended) std::erase(links_, link);
        return true;
    }
    void upwards(const std::shared_ptr<Link>& link) {
        int parent = link->parent, child = link->child;
        Daemon& to = at(parent);
        if (!link->up.empty()) {
            wire::Message message = link->up.front();
            link->up.pop_front();
            if (!to.alive) return;
            if (auto* attach = std::get_if<wire::Attach>(&message)) {
                // The other connection of this child is closed first, though it may be the newer one.
                for (auto& old : links_)
                    if (old != link && old->parent == parent && old->child == child && old->known) {
                        to.relay.child_gone(child, false);
                        old->known = false;
                        cut(*old);
                    }
                link->known = true;
                to.relay.child(*attach);
            } else if (link->known) {
                to.relay.from_child(child, message);
            }
            flush(parent);
            hand_up(parent, random_() % 2);
        } else if (link->cut_up) {
            link->cut_up = false;
            link->ended = true;
            if (to.alive && std::exchange(link->known, false)) {
                to.relay.child_gone(child, random_() % 2);
                flush(parent);
                hand_up(parent, random_() % 2);
            }
        }
    }
    void downwards(const std::shared_ptr<Link>& link) {
        Daemon& to = at(link->child);
        if (!link->down.empty()) {
            wire::Message message = link->down.front();
            link->down.pop_front();
            if (!to.alive || to.up != link) return;
            auto* call = std::get_if<wire::Roll>(&message);
            auto* order = std::get_if<wire::Order>(&message);
            ASSERT_TRUE(call || order);
            if (call) {
                to.relay.roll(*call);
            } else if (auto inner = to.relay.order(*order)) {
                EXPECT_GT(order->number, to.newest);  // in order, and none twice
                to.newest = order->number;
                to.hear(*inner);
            }
            flush(link->child);
            hand_up(link->child, random_() % 2);
        } else if (link->cut_down) {
            link->cut_down = false;
            link->ended = true;
            if (to.alive && to.up == link) {
                to.up.reset();
                to.relay.lost_above();
            }
        }
    }

    Random random_;
    Shape shape_;
    std::vector<Daemon> daemons_;
    std::vector<std::shared_ptr<Link>> links_;
    uint64_t orders_ = 0;
    uint32_t calls_ = 1;
    std::set<int> here_;  // have answered the newest call
};

// In every phase of a checkpoint, relays die and connections break.
void play(unsigned seed, bool faults) {
    Random random(seed);
    World world(seed, 3 + static_cast<int>(random() % 12), 1 + random() % 3);
    std::vector<wire::Message> orders = {wire::Begin{1, Generation(1)}, wire::Freeze{1}, wire::Drain{1, 1},
                                         wire::Save{1, "/", Generation(1), ""}, wire::Cancel{1, "why"}};
    for (const wire::Message& order : orders) {
        world.order(order);
        for (int i = static_cast<int>(random() % 200); i-- > 0;) {
            world.step(faults);
            world.check();
            ASSERT_FALSE(testing::Test::HasFailure()) << "seed " << seed;
        }
    }
    world.settle();
    world.check();
    if (std::getenv("RELAY_SEED")) world.print();
    world.all_heard("Cancel");
    world.all_here();
    const auto& answers = world.top().tally().answers();
    EXPECT_EQ(answers.resumed.ranks, world.alive_ranks());
    EXPECT_EQ(answers.restored.ranks, world.alive_ranks());
    world.order(wire::FinalizeReleased{});
    world.settle();
    world.all_heard("FinalizeReleased");
    world.order(wire::Kill{});
    world.settle();
    world.all_heard("Kill");
    ASSERT_FALSE(testing::Test::HasFailure()) << "seed " << seed;
}

TEST(Relay, WithoutFaultsAllIsCounted) {
    for (unsigned seed = 1; seed <= 50; ++seed) ASSERT_NO_FATAL_FAILURE(play(seed, false));
}

TEST(Relay, RelaysDieAndConnectionsBreakInEveryPhase) {
    unsigned first = 1, count = 400;
    if (const char* text = std::getenv("RELAY_SEEDS")) count = static_cast<unsigned>(std::atoi(text));
    if (const char* text = std::getenv("RELAY_SEED"))
        first = static_cast<unsigned>(std::atoi(text)), count = 1;
    for (unsigned seed = first; seed < first + count; ++seed) ASSERT_NO_FATAL_FAILURE(play(seed, true));
}

// The launcher's daemon speaks before it knows what the root calls it.
TEST(Relay, WordsOfALaunchersDaemonNameIt) {
    Relay relay;
    relay.own(wire::Ready{3, "c", 2});
    relay.placed({7, 0, {{0, "a"}}, 5000, 30000});
    relay.above();
    relay.take_out();
    relay.roll(wire::Roll{1});
    relay.own(wire::RankEnded{4, 4711, "c", 9, wire::RankEnd::running});
    int ready = -1, ended = -1;
    for (const Relay::Out& out : relay.take_out()) {
        EXPECT_EQ(out.to, Relay::kUp);
        if (auto* m = std::get_if<wire::Ready>(&out.message)) ready = m->daemon;
        if (auto* m = std::get_if<wire::RankEnded>(&out.message)) ended = m->daemon;
    }
    EXPECT_EQ(ready, 7);
    EXPECT_EQ(ended, 7);
    // Words from below keep the name that they have.
    relay.child(wire::Attach{9, 0, 0});
    relay.from_child(9, wire::Here{1, {9}, {}});
    relay.take_out();
    relay.from_child(9, wire::RankEnded{5, 4712, "d", 9, wire::RankEnd::running, 9});
    const auto out = relay.take_out();
    ASSERT_EQ(out.size(), 1u);
    EXPECT_EQ(std::get<wire::RankEnded>(out[0].message).daemon, 9);
}

}  // namespace
}  // namespace fermata::tree
