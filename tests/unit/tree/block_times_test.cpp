// Times of ranks add up to the same in any order, stay small whatever the job's size, and what comes from
// outside is looked at.
#include "tree/block_times.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "wire/frame.h"

namespace fermata::tree {
namespace {

using Random = std::mt19937;
using Took = std::vector<uint64_t>;

BlockTimes one(uint32_t rank, uint32_t ranks, const Took& took) {
    return BlockTimes::of_rank(static_cast<int32_t>(rank), wire::block_of(rank, ranks), took).value();
}

BlockTimes sum(BlockTimes a, const BlockTimes& b) {
    a.add(b);
    return a;
}

TEST(BlockTimes, EachRankHasABlockAndNeighboursShareOne) {
    for (uint32_t ranks : {1u, 2u, 63u, 64u, 65u, 100u, 128u, 100'000u}) {
        std::vector<uint32_t> in(wire::kMostBlocks);
        uint32_t before = 0;
        for (uint32_t rank = 0; rank < ranks; ++rank) {
            const uint32_t block = wire::block_of(rank, ranks);
            ASSERT_LT(block, wire::blocks_of(ranks));
            ASSERT_TRUE(block == before || block == before + 1) << rank << " of " << ranks;
            if (ranks <= wire::kMostBlocks) {
                EXPECT_EQ(block, rank);
            }
            before = block;
            ++in[block];
        }
        const auto [least, most] = std::minmax_element(in.begin(), in.begin() + wire::blocks_of(ranks));
        EXPECT_LE(*most - *least, 1u) << ranks;
    }
}

// Against what is counted here, rank by rank; merged as groups of groups in any order.
TEST(BlockTimes, AddUpToTheSameInAnyOrder) {
    Random random(3);
    for (int run = 0; run < 200; ++run) {
        const uint32_t ranks = 1 + static_cast<uint32_t>(random() % 300);
        std::vector<wire::BlockTimes> wanted(wire::blocks_of(ranks));
        std::vector<BlockTimes> parts;
        for (uint32_t rank = 0; rank < ranks; ++rank) {
            Took took(wire::kTimedPhaseCount);
            for (uint64_t& us : took) us = random() % 20;  // many are as slow
            wire::BlockTimes& block = wanted[wire::block_of(rank, ranks)];
            if (block.ranks++ == 0) {
                block.block = wire::block_of(rank, ranks);
                block.slowest.resize(wire::kTimedPhaseCount, -1);
                block.slowest_us.resize(wire::kTimedPhaseCount);
                block.sums_us.resize(wire::kTimedPhaseCount);
            }
            for (size_t i = 0; i < took.size(); ++i) {
                block.sums_us[i] += took[i];
                if (block.slowest[i] < 0 || took[i] > block.slowest_us[i])
                    block.slowest_us[i] = took[i], block.slowest[i] = static_cast<int32_t>(rank);
            }
            parts.push_back(one(rank, ranks, took));
        }
        while (parts.size() > 1) {
            std::shuffle(parts.begin(), parts.end(), random);
            BlockTimes last = std::move(parts.back());
            parts.pop_back();
            parts.back().add(last);
        }
        ASSERT_EQ(parts[0].blocks(), wanted) << run;
        EXPECT_EQ(BlockTimes::of(parts[0].blocks()), parts[0]);  // and it may be handed up
    }
}

TEST(BlockTimes, SumsThatReachTheirLimitDoNotMindTheOrder) {
    const wire::BlockTimes most{0,
                                10'000'000,
                                Took(5, wire::kMostPhaseUs),
                                {1, 1, 1, 1, 1},
                                Took(5, wire::kMostPhaseUs * 10'000'000)};
    const BlockTimes large = BlockTimes::of({most}).value(), small = one(0, 1, {1, 2, 3, 4, 5});
    EXPECT_EQ(sum(sum(large, large), small), sum(large, sum(large, small)));
    EXPECT_EQ(sum(small, large), sum(large, small));
    EXPECT_TRUE(BlockTimes::of(sum(large, large).blocks()));
}

TEST(BlockTimes, OfAHundredThousandRanksAreSmall) {
    Random random(4);
    BlockTimes all;
    for (uint32_t rank = 0; rank < 100'000; ++rank)
        all.add(one(rank, 100'000, Took(wire::kTimedPhaseCount, random())));
    wire::Images images;
    const size_t without = wire::encode(images).size();
    images.blocks = all.blocks();
    EXPECT_EQ(images.blocks.size(), wire::kMostBlocks);
    EXPECT_LT(wire::encode(images).size() - without, 9u << 10);
}

TEST(BlockTimes, WhatCannotBeIsNone) {
    const Took took{1, 2, 3, 4, 5};
    EXPECT_TRUE(BlockTimes::of_rank(3, 3, {})->empty());
    EXPECT_TRUE(BlockTimes::of_rank(3, 3, took));
    EXPECT_FALSE(BlockTimes::of_rank(-1, 3, took));
    EXPECT_FALSE(BlockTimes::of_rank(3, 64, took));
    EXPECT_FALSE(BlockTimes::of_rank(3, 3, {1, 2, 3, 4}));
    EXPECT_FALSE(BlockTimes::of_rank(3, 3, Took(6, 1)));
    EXPECT_FALSE(BlockTimes::of_rank(3, 3, {1, 2, 3, 4, wire::kMostPhaseUs + 1}));
    const wire::BlockTimes good{3, 2, took, {3, 3, 3, 3, 3}, took};
    EXPECT_TRUE(BlockTimes::of({}));
    EXPECT_TRUE(BlockTimes::of({good}));
    auto with = [&](auto change) {
        wire::BlockTimes bad = good;
        change(bad);
        return std::vector<wire::BlockTimes>{bad};
    };
    for (const auto& bad :
         {with([](auto& b) { b.block = 64; }), with([](auto& b) { b.ranks = 0; }),
          with([](auto& b) { b.ranks = 10'000'001; }), with([](auto& b) { b.slowest.pop_back(); }),
          with([](auto& b) { b.slowest[2] = -1; }), with([](auto& b) { b.slowest[2] = 10'000'000; }),
          with([](auto& b) { b.slowest_us.push_back(1); }), with([](auto& b) { b.sums_us[4] = 4; }),
          with([](auto& b) { b.sums_us.clear(); }), with([](auto& b) { b.sums_us[4] = UINT64_MAX; })})
        EXPECT_FALSE(BlockTimes::of(bad));
    wire::BlockTimes next = good;
    next.block = 4;
    EXPECT_TRUE(BlockTimes::of({good, next}));
    EXPECT_FALSE(BlockTimes::of({next, good}));
    EXPECT_FALSE(BlockTimes::of({good, good}));
}

}  // namespace
}  // namespace fermata::tree
