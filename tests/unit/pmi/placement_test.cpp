// Which node holds which ranks: ranges in, PMI's text and the way back out.
#include "pmi/placement.h"

#include <gtest/gtest.h>

#include <random>

#include "base/error.h"
#include "pmi/world.h"

namespace fermata::pmi {
namespace {

TEST(Placement, BlocksAreJoined) {
    Placement placement;
    for (uint32_t node = 0; node < 1000; ++node) placement.add(node, 128);
    EXPECT_EQ(placement.mapping(), "(vector,(0,1000,128))");
    EXPECT_EQ(placement.ranks(), 128000u);
    EXPECT_EQ(placement.nodes(), 1000u);
    EXPECT_EQ(placement.node_of(Rank(0)), 0u);
    EXPECT_EQ(placement.node_of(Rank(127)), 0u);
    EXPECT_EQ(placement.node_of(Rank(128)), 1u);
    EXPECT_EQ(placement.node_of(Rank(127999)), 999u);
    EXPECT_EQ(placement.ranks_on(7), (std::vector<RankRange>{RankRange(Rank(896), 128)}));
    EXPECT_TRUE(placement.ranks_on(1000).empty());
    EXPECT_THROW(placement.node_of(Rank(128000)), Error);
}

// Rank by rank gives the same as node by node.
TEST(Placement, RankByRank) {
    Placement placement;
    for (uint32_t rank = 0; rank < 12; ++rank) placement.add(rank / 4, 1);
    EXPECT_EQ(placement.mapping(), "(vector,(0,3,4))");
}

TEST(Placement, RoundRobinAndUneven) {
    Placement placement;
    for (uint32_t rank = 0; rank < 6; ++rank) placement.add(rank % 2, 1);
    placement.add(5, 3);
    EXPECT_EQ(placement.mapping(), "(vector,(0,2,1),(0,2,1),(0,2,1),(2,1,3))");
    EXPECT_EQ(placement.ranks_on(1),
              (std::vector<RankRange>{RankRange(Rank(1), 1), RankRange(Rank(3), 1), RankRange(Rank(5), 1)}));
    EXPECT_EQ(placement.ranks_on(5), (std::vector<RankRange>{RankRange(Rank(6), 3)}));
    for (uint32_t rank = 0; rank < 6; ++rank) EXPECT_EQ(placement.node_of(Rank(rank)), rank % 2);
    EXPECT_EQ(Placement::of(placement.blocks()).mapping(), placement.mapping());
}

TEST(Placement, EveryRankIsOnTheNodeThatHoldsIt) {
    std::mt19937 generator(7);
    auto random = [&](uint32_t below) { return static_cast<uint32_t>(generator() % below); };
    for (int round = 0; round < 200; ++round) {
        Placement placement;
        std::vector<uint32_t> nodes;
        for (uint32_t i = 0; i < 20; ++i) {
            const uint32_t node = random(4), ranks = random(4);
            placement.add(node, ranks);
            nodes.insert(nodes.end(), ranks, node);
        }
        ASSERT_EQ(placement.ranks(), nodes.size());
        for (uint32_t rank = 0; rank < nodes.size(); ++rank) {
            ASSERT_EQ(placement.node_of(Rank(rank)), nodes[rank]) << placement.mapping();
            for (uint32_t node = 0; node < 4; ++node) {
                bool held = false;
                for (const RankRange& range : placement.ranks_on(node))
                    held = held || range.holds(Rank(rank));
                ASSERT_EQ(held, node == nodes[rank]);
            }
        }
    }
}

TEST(Placement, AnyAssignment) {
    const Placement placement = Placement::by_rank({2, 2, 0, 0, 2});
    EXPECT_EQ(placement.blocks(), (std::vector<Block>{{2, 1, 2}, {0, 1, 2}, {2, 1, 1}}));
    EXPECT_EQ(placement.nodes_with_ranks(), (std::vector<uint32_t>{0, 2}));
    EXPECT_EQ(placement.mapping(), "(vector,(1,1,2),(0,1,2),(1,1,1))") << "node 1 has none";
    EXPECT_TRUE(placement.ranks_on(1).empty());
    EXPECT_EQ(Placement::by_rank({0, 0, 1, 1}).blocks(), (std::vector<Block>{{0, 2, 2}}));
}

// A rank goes to where its copy is, and the last one of a node leaves it without any.
TEST(Placement, ARankMoves) {
    Placement placement = Placement::by_rank({0, 0, 1, 1});
    placement = placement.moved(Rank(2), 0);
    EXPECT_EQ(placement.mapping(), "(vector,(0,1,3),(1,1,1))");
    placement = placement.moved(Rank(3), 2);
    EXPECT_EQ(placement.mapping(), "(vector,(0,1,3),(1,1,1))");
    EXPECT_EQ(placement.node_of(Rank(3)), 2u);
    placement = placement.moved(Rank(0), 2).moved(Rank(1), 2).moved(Rank(2), 2);
    EXPECT_EQ(placement.mapping(), "(vector,(0,1,4))");
    EXPECT_EQ(placement.nodes_with_ranks(), (std::vector<uint32_t>{2}));
    EXPECT_THROW(placement.moved(Rank(4), 0), Error);
}

TEST(Placement, WhatCannotBe) {
    EXPECT_THROW(Placement::of({{0, 0, 4}}), Error);
    EXPECT_THROW(Placement::of({{0, 4, 0}}), Error);
    EXPECT_THROW(Placement::of({{0, 0xffffffff, 0xffffffff}}), Error);
    EXPECT_THROW(Placement::of({{0xffffffff, 1, 1}}), Error);
    EXPECT_THROW(Placement::on_one_node(Rank::kMost + 1), Error);
}

TEST(World, ProgramsOfRanks) {
    World world;
    world.placement = Placement::on_one_node(6);
    world.programs = {1, 0, 5};
    world.check();
    EXPECT_EQ(world.program_of(Rank(0)), 0u);
    EXPECT_EQ(world.program_of(Rank(1)), 2u);
    EXPECT_EQ(world.program_of(Rank(5)), 2u);
    world.programs = {1, 2};
    EXPECT_THROW(world.check(), Error);
}

TEST(World, WhatCannotBe) {
    World world;
    EXPECT_THROW(world.check(), Error);  // no ranks
    world.placement = Placement::on_one_node(2);
    world.check();
    for (const char* name : {"", "a b", "a=b", "a\nb", "ä"}) {
        world.name = name;
        EXPECT_THROW(world.check(), Error) << name;
    }
    world.name = "job-7.epoch_2";
    world.check();
    world.node = 1;
    EXPECT_THROW(world.check(), Error);
}

}  // namespace
}  // namespace fermata::pmi
