// Rounds of answers, by which the root knows that all ranks live.
#include "root/plan/doubts.h"

#include <gtest/gtest.h>

namespace fermata::root {
namespace {

using Answers = std::map<int32_t, uint64_t>;

TEST(Doubts, AreOverOnceAllDaemonsHaveAnsweredARoundThatBeganLater) {
    Doubts doubts;
    EXPECT_FALSE(doubts.begin({1, 2}, 0)) << "nobody has asked";
    doubts.asked(3, 70);
    const auto round = doubts.begin({1, 2}, 0);
    ASSERT_TRUE(round);
    EXPECT_FALSE(doubts.begin({1, 2}, 0)) << "it is under way";
    doubts.asked(3, 71);
    doubts.asked(5, 80);
    EXPECT_TRUE(doubts.answered(1, *round, true, 0).empty());
    EXPECT_EQ(doubts.answered(2, *round, true, 0), (Answers{{3, 70}})) << "others have asked since";
    const auto next = doubts.begin({1, 2}, 0);
    ASSERT_TRUE(next);
    EXPECT_TRUE(doubts.answered(2, *round, true, 0).empty()) << "to a former round";
    doubts.answered(2, *next, true, 0);
    EXPECT_EQ(doubts.answered(1, *next, true, 0), (Answers{{3, 71}, {5, 80}}));
    EXPECT_FALSE(doubts.begin({1, 2}, 0));
}

TEST(Doubts, StayWhileAProcessIsOnItsWayOut) {
    Doubts doubts;
    doubts.asked(0, 1);
    const auto round = doubts.begin({1, 2}, 1000);
    EXPECT_TRUE(doubts.answered(1, *round, false, 1000).empty());
    EXPECT_TRUE(doubts.answered(2, *round, true, 1000).empty()) << "the round is over";
    EXPECT_FALSE(doubts.begin({1, 2}, 1050)) << "it is given a moment";
    const auto next = doubts.begin({1, 2}, 1100);
    ASSERT_TRUE(next);
    doubts.answered(1, *next, true, 1101);
    EXPECT_EQ(doubts.answered(2, *next, true, 1101), (Answers{{0, 1}}));
}

TEST(Doubts, AreAskedAgainOfOtherNodesWhenOneIsLost) {
    Doubts doubts;
    doubts.asked(0, 1);
    const auto round = doubts.begin({1, 2}, 0);
    doubts.answered(1, *round, true, 0);
    const auto next = doubts.begin({1, 3}, 0);
    ASSERT_TRUE(next) << "a daemon that is gone answers nothing";
    EXPECT_TRUE(doubts.answered(1, *next, true, 0).empty());
    EXPECT_EQ(doubts.answered(3, *next, true, 0), (Answers{{0, 1}}));
}

}  // namespace
}  // namespace fermata::root
