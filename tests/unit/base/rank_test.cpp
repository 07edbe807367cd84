// Ranks and ranges: what cannot be is refused, in release builds too.
#include "base/rank.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <type_traits>
#include <vector>

#include "base/error.h"
#include "base/range.h"
#include "base/ranges.h"

namespace fermata {
namespace {

// Neither is the other, nor a number, but by a function that says so.
static_assert(!std::is_convertible_v<Rank, PhysicalRank> && !std::is_constructible_v<PhysicalRank, Rank>);
static_assert(!std::is_convertible_v<PhysicalRank, Rank> && !std::is_constructible_v<Rank, PhysicalRank>);
static_assert(!std::is_convertible_v<int, Rank> && !std::is_convertible_v<Rank, int>);
static_assert(!std::is_default_constructible_v<Rank>);
// As they lie in memory, in images and in the front's hot paths.
static_assert(sizeof(Rank) == 4 && std::is_trivially_copyable_v<Rank>);
static_assert(sizeof(Range) == 16 && std::is_trivially_copyable_v<Range>);

std::string fault_of(const std::function<void()>& what) {
    try {
        what();
    } catch (const Error& error) {
        return error.what();
    }
    return {};
}

TEST(Rank, OnlyOfAJobThatHasIt) {
    EXPECT_EQ(Rank::among(3, 4)->number(), 3u);
    EXPECT_FALSE(Rank::among(4, 4));
    EXPECT_FALSE(Rank::among(-1, 4));
    EXPECT_FALSE(Rank::among(0, 0));
    EXPECT_FALSE(Rank::among(UINT32_MAX, uint64_t{1} << 40));
    EXPECT_TRUE(Rank::of(Rank::kMost - 1));
    EXPECT_FALSE(Rank::of(Rank::kMost));
    EXPECT_LT(Rank(1), Rank(2));
}

TEST(Rank, ABrokenInvariantIsOneLine) {
    EXPECT_EQ(fault_of([] { Rank(Rank::kMost); }),
              "internal error: a rank that no job has (please report it, with the command)");
    EXPECT_NE(fault_of([] { PhysicalRank(-1); }), "");
    EXPECT_NE(fault_of([] { RankRange(Rank(0), 0); }), "");
    EXPECT_NE(fault_of([] { RankRange(Rank(5), Rank::kMost - 4); }), "");
    EXPECT_NE(fault_of([] { Range(2, 1); }), "");
    EXPECT_NE(fault_of([] { Range::sized(UINT64_MAX, 1); }), "");
}

TEST(Rank, TheSeamGoesThereAndBack) {
    for (uint32_t number : {0u, 7u, Rank::kMost - 1})
        EXPECT_EQ(played_by(physical_rank(Rank(number))), Rank(number));
}

TEST(RankRange, HoldsItsRanksAndNoOthers) {
    const RankRange some(Rank(3), 2);
    std::vector<uint32_t> all;
    some.each([&](Rank rank) { all.push_back(rank.number()); });
    EXPECT_EQ(all, (std::vector<uint32_t>{3, 4}));
    for (uint32_t number = 0; number < 8; ++number)
        EXPECT_EQ(some.holds(Rank(number)), number == 3 || number == 4);
    EXPECT_EQ(RankRange::of(3, 2), some);
    EXPECT_FALSE(RankRange::of(3, 0));
    EXPECT_FALSE(RankRange::of(-1, 2));
    EXPECT_FALSE(RankRange::of(1, Rank::kMost));
    EXPECT_FALSE(RankRange::of(1, UINT64_MAX));
}

TEST(Range, WhatTwoHaveAndWhatLiesBetween) {
    const Range low(1, 4), high(3, 9), apart(20, 30);
    EXPECT_EQ(low.common(high), Range(3, 4));
    EXPECT_TRUE(low.common(apart).empty());
    EXPECT_EQ(low.hull(apart), Range(1, 30));
    EXPECT_TRUE(low.overlaps(high));
    EXPECT_FALSE(low.overlaps(apart));
    EXPECT_TRUE(high.contains(Range::sized(3, 6)));
    EXPECT_FALSE(high.contains(uint64_t{9}));
    EXPECT_EQ(Range::sized(UINT64_MAX, 0).size(), 0u);
}

TEST(Range, ListsOfThem) {
    const std::vector<Range> known = {{0x1000, 0x3000}, {0x3000, 0x4000}, {0x6000, 0x7000}};
    EXPECT_TRUE(difference({{0x1000, 0x4000}}, known).empty());  // two that touch
    EXPECT_TRUE(difference({{0x2000, 0x3000}}, known).empty());
    EXPECT_EQ(difference({{0x3000, 0x5000}}, known), (std::vector<Range>{{0x4000, 0x5000}}));
    EXPECT_EQ(difference({{0x0, 0x8000}}, known),
              (std::vector<Range>{{0x0, 0x1000}, {0x4000, 0x6000}, {0x7000, 0x8000}}));
    EXPECT_EQ(difference({{0x4000, 0x6000}}, known), (std::vector<Range>{{0x4000, 0x6000}}));
    EXPECT_EQ(intersection(known, {{0x2000, 0x6800}}),
              (std::vector<Range>{{0x2000, 0x3000}, {0x3000, 0x4000}, {0x6000, 0x6800}}));
    std::vector<Range> all = known;
    append(all, {0x7000, 0x9000});
    EXPECT_EQ(all.back(), Range(0x6000, 0x9000));
}

}  // namespace
}  // namespace fermata
