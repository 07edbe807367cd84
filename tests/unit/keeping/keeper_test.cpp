// The rounds together: one number for each order, who waits for whom, and what must not go meanwhile.
#include "keeping/keeper.h"

#include "fake_nodes.h"
#include "keeping/levels/words.h"

namespace fermata::keeping {
namespace {

class KeeperTest : public KeepingTest {
  protected:
    KeeperTest() {
        settings_.levels = parse_levels("memory 1s, local 10s, buddy 10s, rs:1+1 10s, files 60s");
        EXPECT_EQ(keeper_.place().refusal, "");
    }
    void answer(const wire::Fetch& order) {
        for (const char* node : {"a", "b"}) keeper_.heard(wire::Fetched{order.number, node, 10, {}});
    }
    void answer(const wire::Encode& order) {
        for (const char* node : {"a", "b"}) keeper_.heard(wire::Encoded{order.number, node, 10, ""});
    }

    Keeper keeper_{settings_, store_, nodes_};
};

TEST_F(KeeperTest, EveryOrderHasANumberOfItsOwn) {
    keeper_.committed(manifest(Generation(1)), 1000);
    keeper_.turn(1000);
    std::set<uint32_t> numbers;
    for (const auto& order : nodes_.all<wire::Fetch>()) numbers.insert(order.number);
    for (const auto& order : nodes_.all<wire::Encode>()) numbers.insert(order.number);
    EXPECT_EQ(numbers.size(), 3u);  // to buddies, to local directories, parity
}

TEST_F(KeeperTest, MendingWaitsForBuddiesAndParityAndTheyForMending) {
    keeper_.committed(manifest(Generation(1)), 1000);
    keeper_.turn(1000);
    keeper_.mending().start({}, 3);
    ASSERT_EQ(nodes_.all<wire::AskCopies>().size(), 1u);
    const uint32_t question = nodes_.all<wire::AskCopies>()[0].number;
    for (const char* node : {"a", "b"}) {
        wire::Copies answer;
        answer.host = node;
        answer.number = question;
        EXPECT_TRUE(keeper_.heard(answer));
    }
    keeper_.turn(2000);
    keeper_.turn(2000);
    EXPECT_EQ(nodes_.all<wire::AskCopies>().size(), 1u);  // buddies and parity are under way
    for (const auto& order : nodes_.all<wire::Fetch>())
        if (order.into == Medium::memory) answer(order);
    keeper_.turn(3000);
    EXPECT_EQ(nodes_.all<wire::AskCopies>().size(), 1u);  // parity is
    keeper_.committed(manifest(Generation(2)), 3000);
    answer(nodes_.all<wire::Encode>()[0]);
    const size_t fetches = nodes_.all<wire::Fetch>().size();
    keeper_.turn(30'000);
    EXPECT_EQ(nodes_.all<wire::AskCopies>().size(), 2u);  // mended what could be, and looked again
    EXPECT_TRUE(keeper_.mending().under_way());
    keeper_.turn(30'000);
    EXPECT_EQ(nodes_.all<wire::Encode>().size(), 1u);  // generation 2 is due, and waits
    EXPECT_EQ(nodes_.all<wire::Fetch>().size(), fetches);
}

TEST_F(KeeperTest, WhatIsBeingCopiedStays) {
    keeper_.committed(manifest(Generation(1)), 1000);
    keeper_.turn(1000);
    keeper_.committed(manifest(Generation(2)), 1500);
    const auto kept = nodes_.all<wire::KeepCopies>().back();
    EXPECT_EQ(kept.generations, (std::vector<Generation>{Generation(1), Generation(2)}));
    EXPECT_EQ(kept.local, (std::vector<Generation>{Generation(1)}));  // nodes have some of it already
}

TEST_F(KeeperTest, OrdersAreSaidAgainWhenTheRollHasBeenCalled) {
    keeper_.committed(manifest(Generation(1)), 1000);
    keeper_.turn(1000);
    const size_t before = nodes_.told.size();
    keeper_.roll_is_called();
    nodes_.is_whole = false;
    keeper_.turn(1100);
    EXPECT_EQ(nodes_.told.size(), before);
    nodes_.is_whole = true;
    keeper_.turn(1200);
    EXPECT_EQ(nodes_.told.size(), before + 3);
    keeper_.turn(1300);
    EXPECT_EQ(nodes_.told.size(), before + 3);
}

TEST_F(KeeperTest, AnAnswerToNobodysOrderIsNobodys) {
    EXPECT_FALSE(keeper_.heard(wire::Fetched{77, "a", 0, {}}));
    EXPECT_FALSE(keeper_.heard(wire::Encoded{77, "a", 0, ""}));
    EXPECT_FALSE(keeper_.heard(wire::Flushed{77, "a", 0, ""}));
}

TEST_F(KeeperTest, TheFirstLevelThatHasNoPlaceRefusesAFirstStart) {
    nodes_.there = {"a"};
    const Keeper::Placed placed = keeper_.place();
    EXPECT_NE(placed.refusal, "");
    ASSERT_EQ(placed.lines.size(), 2u);
    EXPECT_EQ(placed.lines[0].rfind("no second copies: ", 0), 0u);
    EXPECT_EQ(placed.lines[1].rfind("no parity: ", 0), 0u);
}

}  // namespace
}  // namespace fermata::keeping
