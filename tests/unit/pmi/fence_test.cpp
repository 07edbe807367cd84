// Parts of fences merged at the root and at relays; every fence gets one result, or a fault.
#include "pmi/fence.h"

#include <gtest/gtest.h>

namespace fermata::pmi {
namespace {

constexpr uint32_t kEpoch = 3;

Fence part(uint32_t number, uint32_t ranks, uint32_t of, const std::string& data,
           std::vector<RankRange> among = {}) {
    return {{kEpoch, std::move(among), number}, ranks, of, data, {}};
}

TEST(FenceMerge, WholeWhenEveryRankIsInIt) {
    FenceMerge root(FenceMerge::Level::root, kEpoch, 6);
    for (uint32_t number = 0; number < 3; ++number) {
        EXPECT_FALSE(root.add(part(number, 2, 6, "a")));
        EXPECT_FALSE(root.add(part(number, 3, 6, "b")));
        auto result = root.add(part(number, 1, 6, "c"));
        ASSERT_TRUE(result && result->whole());
        EXPECT_EQ(result->data, "abc");
        EXPECT_EQ(result->fault, "");
    }
}

TEST(FenceMerge, ThroughARelay) {
    FenceMerge root(FenceMerge::Level::root, kEpoch, 6), relay(FenceMerge::Level::relay, kEpoch, 4);
    EXPECT_FALSE(relay.add(part(0, 2, 6, "a")));
    auto merged = relay.add(part(0, 2, 6, "b"));
    ASSERT_TRUE(merged);
    EXPECT_EQ(merged->ranks, 4u);
    EXPECT_FALSE(root.add(part(0, 2, 6, "c")));
    auto result = root.add(*merged);
    ASSERT_TRUE(result && result->whole());
    EXPECT_EQ(result->data, "cab");
    // Of some ranks only: a relay does not know who is due.
    EXPECT_TRUE(relay.add(part(0, 1, 2, "x", {RankRange(Rank(0), 2)})));
    // A fault does not wait for anybody.
    Fence fault = part(1, 0, 6, "");
    fault.fault = "rank 1 died";
    EXPECT_FALSE(relay.add(part(1, 2, 6, "a")));
    ASSERT_TRUE(relay.add(fault));
}

TEST(FenceMerge, AmongSomeBesideTheWorld) {
    FenceMerge root(FenceMerge::Level::root, kEpoch, 6);
    const std::vector<RankRange> some = {RankRange(Rank(1), 2), RankRange(Rank(5), 1)};
    EXPECT_FALSE(root.add(part(0, 5, 6, "w")));
    EXPECT_FALSE(root.add(part(0, 2, 3, "s", some)));
    auto result = root.add(part(0, 1, 3, "t", some));
    ASSERT_TRUE(result && result->whole());
    EXPECT_EQ(result->name.among, some);
    EXPECT_EQ(result->data, "st");
    EXPECT_TRUE(root.add(part(0, 1, 6, "x")));
}

TEST(FenceMerge, ADeathFailsWhatWaitsAndWhatFollows) {
    FenceMerge root(FenceMerge::Level::root, kEpoch, 6);
    const std::vector<RankRange> without = {RankRange(Rank(0), 2)}, with = {RankRange(Rank(2), 2)};
    EXPECT_FALSE(root.add(part(0, 5, 6, "")));
    EXPECT_FALSE(root.add(part(0, 1, 2, "", without)));
    auto failed = root.lost(Rank(3), "was killed by signal 9");
    ASSERT_EQ(failed.size(), 1u);
    EXPECT_EQ(failed[0].fault, "rank 3 was killed by signal 9");
    EXPECT_TRUE(failed[0].name.among.empty());
    EXPECT_FALSE(root.add(part(0, 1, 6, ""))) << "its result is out";
    auto later = root.add(part(1, 1, 6, ""));
    ASSERT_TRUE(later);
    EXPECT_EQ(later->fault, "rank 3 was killed by signal 9");
    EXPECT_FALSE(root.add(part(1, 4, 6, ""))) << "its result is out";
    EXPECT_TRUE(root.add(part(0, 1, 2, "", with))->fault.size());
    EXPECT_EQ(root.add(part(0, 1, 2, "", without))->fault, "");
}

TEST(FenceMerge, AFaultIsForAll) {
    FenceMerge root(FenceMerge::Level::root, kEpoch, 6);
    EXPECT_FALSE(root.add(part(0, 4, 6, "")));
    Fence fault = part(0, 0, 6, "");
    fault.fault = "rank 5 broke the rules";
    auto result = root.add(fault);
    ASSERT_TRUE(result && result->whole());
    EXPECT_EQ(result->fault, fault.fault);
    EXPECT_FALSE(root.add(fault)) << "one result";
}

TEST(FenceMerge, AnotherEpochIsAnsweredAtOnce) {
    FenceMerge root(FenceMerge::Level::root, kEpoch + 1, 6);
    auto result = root.add(part(7, 4, 6, ""));
    ASSERT_TRUE(result);
    EXPECT_EQ(result->name.epoch, kEpoch);
    EXPECT_EQ(result->fault, "a fence of epoch 3, this is epoch 4");
    EXPECT_FALSE(root.add(part(7, 2, 6, "")));
    EXPECT_TRUE(root.add(part(8, 2, 6, "")));
}

TEST(FenceMerge, WhatCannotBe) {
    FenceMerge root(FenceMerge::Level::root, kEpoch, 6);
    for (const Fence& bad : {part(1, 1, 6, ""), part(0, 1, 7, ""), part(0, 0, 6, ""), part(0, 1, 0, ""),
                             part(0, 7, 6, ""), part(0, 1, 3, "", {RankRange(Rank(0), 2)}),
                             part(9, 1, 2, "", {RankRange(Rank(0), 2)}), part(0xffffffff, 1, 6, "")}) {
        FenceMerge fresh(FenceMerge::Level::root, kEpoch, 6);
        auto result = fresh.add(bad);
        ASSERT_TRUE(result && result->whole());
        EXPECT_NE(result->fault, "");
        EXPECT_EQ(result->name, bad.name);
    }
    // A fence that cannot be does not end the one that is due.
    EXPECT_FALSE(root.add(part(0, 5, 6, "a")));
    EXPECT_TRUE(root.add(part(7, 1, 6, "")));
    EXPECT_EQ(root.add(part(0, 1, 6, "b"))->data, "ab");
    // Too many of one.
    EXPECT_FALSE(root.add(part(1, 5, 6, "")));
    EXPECT_NE(root.add(part(1, 2, 6, ""))->fault, "");
}

}  // namespace
}  // namespace fermata::pmi
