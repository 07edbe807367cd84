// Which images a restart has rebuilt from parity, where, and out of what.
#include "keeping/orders/rebuilding.h"

#include <gtest/gtest.h>

namespace fermata::keeping {
namespace {

using Digest = std::array<uint8_t, 16>;

Digest digest(uint32_t generation, int32_t rank) {
    return {static_cast<uint8_t>(generation), static_cast<uint8_t>(rank), 9};
}

store::GenerationInfo in_memory(uint32_t number, const std::vector<uint32_t>& needs = {}) {
    store::GenerationInfo info;
    info.number = number;
    info.manifest.emplace();
    info.manifest->level = store::LevelName::memory;
    info.manifest->needs = needs;
    for (int32_t rank = 0; rank < 4; ++rank) {
        info.manifest->images.push_back(
            {Rank(static_cast<uint32_t>(rank)), "", 100, image::Checksum{digest(number, rank)}, 0});
    }
    info.manifest->nodes = {"a", "b", "c", "d"};
    return info;
}

class RebuildingTest : public testing::Test {
  protected:
    // Rank i on the i-th of four nodes, and all of these generations with parity.
    void all_there(const std::vector<uint32_t>& generations, uint32_t losses) {
        for (int32_t rank = 0; rank < 4; ++rank) {
            const std::string host(1, static_cast<char>('a' + rank));
            wire::Copies answer{host, {}, {rank}, "", "at " + host, {}, {}, "", 1, {}};
            for (uint32_t number : generations) {
                answer.copies.push_back({Generation(number), rank, 100, digest(number, rank)});
                wire::PeerGroup group{Generation(number), losses, Digest{static_cast<uint8_t>(number)}, {}};
                for (int32_t i = 0; i < 4; ++i)
                    group.peers.push_back({std::string(1, static_cast<char>('a' + i)), "", {{i, 1}}});
                answer.parity.push_back(group);
            }
            answers_[host] = answer;
        }
    }
    // The node is there again, with nothing.
    void lose(const std::string& host) {
        answers_[host].copies.clear();
        answers_[host].parity.clear();
    }
    std::optional<wire::Rebuild> order(uint32_t number) {
        for (auto& info : all_)
            if (info.number == number)
                return Rebuilding::order_for(info, all_, answers_, Rebuilding::places_of(answers_), 5);
        return {};
    }

    Asking::Answers answers_;
    std::vector<store::GenerationInfo> all_ = {in_memory(7), in_memory(6)};
};

TEST_F(RebuildingTest, WhatIsLostIsRebuiltWhereItsRankWaits) {
    all_there({6, 7}, 2);
    EXPECT_FALSE(order(7));  // nothing is missing
    lose("b");
    lose("d");
    auto found = order(7);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->number, 5u);
    EXPECT_EQ(found->repairs,
              (std::vector<wire::Repair>{{"b", Generation(7), {{1, 1}}}, {"d", Generation(7), {{3, 1}}}}));
    ASSERT_EQ(found->groups.size(), 1u);
    EXPECT_EQ(found->groups[0].peers[0].addresses, "at a");
    lose("a");
    EXPECT_FALSE(order(7));
}

TEST_F(RebuildingTest, OnSparesToo) {
    all_there({7}, 2);
    answers_.erase("b");
    answers_["x"] = {"x", {}, {1}, "", "at x", {}, {}, "", 1, {}};
    auto found = order(7);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->repairs, (std::vector<wire::Repair>{{"x", Generation(7), {{1, 1}}}}));
    EXPECT_EQ(found->groups[0].peers[1].addresses, "");
}

TEST_F(RebuildingTest, ADamagedImageOfANodeThatLivesCountsAsLost) {
    all_there({7}, 1);
    answers_["c"].copies[0].checksum[5] = 1;  // another one than the manifest's
    auto found = order(7);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->repairs, (std::vector<wire::Repair>{{"c", Generation(7), {{2, 1}}}}));
    lose("a");
    EXPECT_FALSE(order(7));
}

TEST_F(RebuildingTest, WithWhatItNeedsOrNotAtAll) {
    all_[0].manifest->needs = {6};
    all_there({6, 7}, 1);
    lose("b");
    auto found = order(7);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->repairs,
              (std::vector<wire::Repair>{{"b", Generation(6), {{1, 1}}}, {"b", Generation(7), {{1, 1}}}}));
    // No parity of the older one.
    for (auto& [host, answer] : answers_)
        std::erase_if(answer.parity, [](const auto& group) { return group.generation == Generation(6); });
    EXPECT_FALSE(order(7));
}

TEST_F(RebuildingTest, OfFilesOnlyWhatIsBrokenThere) {
    all_[0].manifest->needs = {6};
    for (store::GenerationInfo& info : all_) {
        info.manifest->level = store::LevelName::files;
        info.manifest->nodes.clear();
    }
    all_there({6, 7}, 2);
    lose("b");
    lose("d");
    EXPECT_FALSE(order(7));  // files have it
    all_[0].broken[1] = "it is cut";
    auto found = order(7);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->repairs,
              (std::vector<wire::Repair>{{"b", Generation(6), {{1, 1}}}, {"b", Generation(7), {{1, 1}}}}));
    lose("a");
    EXPECT_FALSE(order(7));
}

TEST_F(RebuildingTest, ParityOfDifferentGroupsIsNotAddedUp) {
    all_there({7}, 1);
    lose("b");
    answers_["c"].parity[0].name = Digest{99};  // of another time
    EXPECT_FALSE(order(7));
}

TEST_F(RebuildingTest, IsDoneWhenAllHaveAnswered) {
    Rebuilding round({5, {{"a", Generation(7), {{0, 1}}}, {"b", Generation(7), {{2, 2}}}}, {}});
    EXPECT_FALSE(round.heard({4, "a", {}, ""}));
    EXPECT_TRUE(round.heard({5, "a", {{"a", Generation(7), {{0, 1}}}}, ""}));
    EXPECT_FALSE(round.done());
    EXPECT_EQ(round.rebuilt(), "gen-000007: rebuilt from parity: the image of rank 0");
    EXPECT_TRUE(round.heard({5, "b", {}, "no room"}));
    EXPECT_TRUE(round.done());
    EXPECT_EQ(round.error(), "b: no room");
}

}  // namespace
}  // namespace fermata::keeping
