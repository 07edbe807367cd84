// Bytes of an exchange: back as they were, and damaged ones refused. (The simulator sends all of its
// exchanges through them, too.)
#include "replay/wire_form.h"

#include <gtest/gtest.h>

namespace fermata::replay {
namespace {

constexpr uint32_t kRanks = 4;

Instance nth(uint64_t n) { return static_cast<Instance>(n); }
Vec<Rank> ranks(std::initializer_list<uint32_t> numbers) {
    Vec<Rank> all;
    for (uint32_t n : numbers) all.push_back(Rank(n));
    return all;
}

Said some_counts() {
    Said said{Rank(2), {}, {}};
    said.consumed.push_back({{Uid{1}, Rank(0), Rank(2), Tag{7}}, MessageNo{12}});
    said.consumed.push_back({{Uid{~uint64_t{0}}, Rank(3), Rank(2), Tag{-1}}, MessageNo{1}});
    CommCounts world{Uid{1}, Uid{0}, nth(0), ranks({0, 1, 2, 3}), {}, nth(6)};
    for (uint64_t n : {1, 2, 4, 6}) world.told.add(nth(n));
    said.comms.push_back(world);
    said.comms.push_back({Uid{77}, Uid{1}, nth(2), ranks({2, 0}), {}, nth(0)});
    return said;
}

Orders some_orders() {
    Orders orders{Epoch{3}, {}, {}};
    orders.known.push_back({{Uid{1}, Rank(1), Rank(2), Tag{0}}, MessageNo{5}});
    CommOrders world{Uid{1}, Uid{0}, nth(0), ranks({0, 1, 2, 3}), {}};
    world.plan.push_back({nth(4), ranks({0, 3}), {}});
    Planned creation{nth(5), ranks({1}), {}};
    creation.made.push_back(Uid{77});
    creation.made.push_back(Uid{5});
    world.plan.push_back(creation);
    orders.comms.push_back(world);
    return orders;
}

TEST(WireForm, CountsComeBack) {
    const Bytes bytes = wire_form(some_counts());
    const auto back = said_from(bytes, kRanks);
    ASSERT_TRUE(back.has_value());
    EXPECT_EQ(back->rank, Rank(2));
    ASSERT_EQ(back->consumed.size(), 2u);
    EXPECT_EQ(back->consumed[1].channel, (Channel{Uid{~uint64_t{0}}, Rank(3), Rank(2), Tag{-1}}));
    EXPECT_EQ(back->consumed[0].count, MessageNo{12});
    ASSERT_EQ(back->comms.size(), 2u);
    EXPECT_EQ(back->comms[0].told, some_counts().comms[0].told);
    EXPECT_EQ(back->comms[0].entered, nth(6));
    EXPECT_EQ(back->comms[1].members, ranks({2, 0})) << "in the order that the communicator has";
    EXPECT_EQ(wire_form(*back), bytes);
}

TEST(WireForm, OrdersComeBack) {
    const Bytes bytes = wire_form(some_orders());
    const auto back = orders_from(bytes, kRanks);
    ASSERT_TRUE(back.has_value());
    EXPECT_EQ(back->epoch, Epoch{3});
    ASSERT_EQ(back->comms.size(), 1u);
    ASSERT_EQ(back->comms[0].plan.size(), 2u);
    EXPECT_EQ(back->comms[0].plan[0].told, ranks({0, 3}));
    EXPECT_EQ(back->comms[0].plan[1].made.size(), 2u);
    EXPECT_EQ(wire_form(*back), bytes);
    EXPECT_FALSE(said_from(bytes, kRanks).has_value()) << "orders are no counts";
}

TEST(WireForm, RanksThatTheJobDoesNotHave) {
    EXPECT_FALSE(said_from(wire_form(some_counts()), 3).has_value());
    EXPECT_FALSE(orders_from(wire_form(some_orders()), 3).has_value());
}

TEST(WireForm, NumbersThatNoJobComesTo) {
    Said said = some_counts();
    said.comms[0].told.become(nth(~uint64_t{0}), {});  // a loop up to it would not end
    EXPECT_FALSE(said_from(wire_form(said), kRanks).has_value());
    Orders orders = some_orders();
    std::swap(orders.comms[0].plan[0], orders.comms[0].plan[1]);
    EXPECT_FALSE(orders_from(wire_form(orders), kRanks).has_value()) << "a plan ascends";
}

TEST(ToldSet, BecomesOnlyWhatASetSays) {
    auto beyond = [](std::initializer_list<uint64_t> numbers) {
        Vec<Instance> all;
        for (uint64_t n : numbers) all.push_back(nth(n));
        return all;
    };
    ToldSet set;
    EXPECT_FALSE(set.become(nth(2), beyond({3, 5}))) << "3 is in the prefix";
    EXPECT_FALSE(set.become(nth(2), beyond({5, 5})));
    EXPECT_FALSE(set.become(nth(2), beyond({6, 5})));
    EXPECT_EQ(set, ToldSet{});
    ASSERT_TRUE(set.become(nth(2), beyond({4, 6})));
    set.add(nth(3));
    EXPECT_EQ(set.prefix(), nth(4));
}

// What a reader takes is what a writer writes: damage is refused, or makes another good value.
template <typename F>
void damage(const Bytes& bytes, F&& reads) {
    for (size_t length = 0; length < bytes.size(); length++)
        EXPECT_FALSE(reads({bytes.data(), length})) << "cut to " << length;
    Bytes longer = bytes;
    longer.push_back(0);
    EXPECT_FALSE(reads(longer));
    for (size_t at = 0; at < bytes.size(); at++)
        for (int bit = 0; bit < 8; bit++) {
            Bytes bad = bytes;
            bad[at] ^= static_cast<uint8_t>(1 << bit);
            reads(bad);
        }
}

TEST(WireForm, Damage) {
    auto same = [](const auto& value, std::span<const uint8_t> bytes) {
        if (value) {
            EXPECT_EQ(wire_form(*value), Bytes(bytes.begin(), bytes.end()));
        }
        return value.has_value();
    };
    damage(wire_form(some_counts()),
           [&](std::span<const uint8_t> bytes) { return same(said_from(bytes, kRanks), bytes); });
    damage(wire_form(some_orders()),
           [&](std::span<const uint8_t> bytes) { return same(orders_from(bytes, kRanks), bytes); });
}

}  // namespace
}  // namespace fermata::replay
