// What comes after a life that has failed: at once, later, from an earlier generation, or nothing any more.
#include "life/recovery.h"

#include <gtest/gtest.h>

namespace fermata::life {
namespace {

using What = Recovery::Next::What;

Life life(uint32_t newest, int rank = 1, int code = 137) {
    Life one;
    one.began = "2026-11-26 09:00:00";
    one.newest = Generation(newest);
    one.code = code;
    one.rank = rank;
    one.why = "rank " + std::to_string(rank) + " is gone";
    return one;
}

TEST(Recovery, NobodyAsksForIt) {
    Recovery recovery(0, Generation());
    auto next = recovery.after(life(3));
    EXPECT_EQ(next.what, What::give_up);
    EXPECT_EQ(next.why, "");
    EXPECT_TRUE(recovery.report().empty());
}

TEST(Recovery, AtOnceAfterProgress) {
    Recovery recovery(100, Generation());
    for (uint32_t newest = 1; newest < 50; ++newest) {
        auto next = recovery.after(life(newest));
        ASSERT_EQ(next.what, What::newest);
        ASSERT_EQ(next.pause, 0);
    }
    EXPECT_EQ(recovery.restarts(), 49);
}

TEST(Recovery, PausesGrowWithoutProgress) {
    Recovery recovery(100, Generation(7));  // `fermata restart`
    double expected[] = {0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300};
    int rank = 0;
    for (double pause : expected) {
        auto next = recovery.after(life(7, rank++));  // another rank each time: another failure
        ASSERT_EQ(next.what, What::newest);
        ASSERT_EQ(next.pause, pause);
    }
    EXPECT_EQ(recovery.after(life(8)).pause, 0);
}

TEST(Recovery, TheSameFailureAgainGoesBackOnceAndThenIsGivenUp) {
    Recovery recovery(100, Generation());
    EXPECT_EQ(recovery.after(life(5)).what, What::newest);
    EXPECT_EQ(recovery.after(life(5)).what, What::earlier);
    auto last = recovery.after(life(5));
    EXPECT_EQ(last.what, What::give_up);
    EXPECT_NE(last.why.find("gen-000005"), std::string::npos);
    ASSERT_EQ(recovery.report().size(), 4u);
    EXPECT_NE(recovery.report()[1].find("the start"), std::string::npos);
    EXPECT_NE(recovery.report()[3].find("rank 1 is gone (exit code 137)"), std::string::npos);
}

TEST(Recovery, AnotherFailureIsNoRepetition) {
    Recovery recovery(100, Generation());
    EXPECT_EQ(recovery.after(life(5, 1)).what, What::newest);
    EXPECT_EQ(recovery.after(life(5, 2)).what, What::newest);
    EXPECT_EQ(recovery.after(life(5, 2, 1)).what, What::newest);
    EXPECT_EQ(recovery.after(life(5, 2, 1)).what, What::earlier);
    EXPECT_EQ(recovery.after(life(5, 3)).what, What::newest);
    EXPECT_EQ(recovery.after(life(5, 3)).what, What::give_up);  // it has gone back already
}

TEST(Recovery, AfterTheEarlierOneProgressCounts) {
    Recovery recovery(100, Generation());
    EXPECT_EQ(recovery.after(life(5)).what, What::newest);
    EXPECT_EQ(recovery.after(life(5)).what, What::earlier);
    EXPECT_EQ(recovery.after(life(6)).what, What::newest);
    EXPECT_EQ(recovery.after(life(6)).what, What::earlier);
}

TEST(Recovery, EndsWithTheRestarts) {
    Recovery recovery(2, Generation());
    EXPECT_EQ(recovery.after(life(1)).what, What::newest);
    EXPECT_EQ(recovery.after(life(2)).what, What::newest);
    auto last = recovery.after(life(3));
    EXPECT_EQ(last.what, What::give_up);
    EXPECT_EQ(last.why, "--max-restarts 2 are used up");
    EXPECT_EQ(recovery.restarts(), 2);
}

TEST(Recovery, NeedsACheckpoint) {
    Recovery recovery(2, Generation());
    auto next = recovery.after(life(0));
    EXPECT_EQ(next.what, What::give_up);
    EXPECT_NE(next.why, "");
}

Life own(bool saved, int rank = 1) {
    Life one = life(0, rank);
    one.saves_itself = true;
    one.saved_itself = saved;
    return one;
}

TEST(Recovery, AProgramThatSavesItselfBeginsAnew) {
    Recovery recovery(100, Generation());
    for (int times = 0; times < 10; ++times) {
        auto next = recovery.after(own(true));
        ASSERT_EQ(next.what, What::anew);
        ASSERT_EQ(next.pause, 0);
    }
    EXPECT_EQ(recovery.after(life(3)).what, What::newest);  // and was saved as a whole later
}

TEST(Recovery, AnewWithoutASaveIsTriedOnceMoreAndThenGivenUp) {
    Recovery recovery(100, Generation());
    EXPECT_EQ(recovery.after(own(true)).what, What::anew);
    auto next = recovery.after(own(false));
    EXPECT_EQ(next.what, What::anew);
    EXPECT_EQ(next.pause, 1);
    auto last = recovery.after(own(false));
    EXPECT_EQ(last.what, What::give_up);
    EXPECT_NE(last.why.find("the program has saved itself"), std::string::npos);
    EXPECT_NE(recovery.report()[1].find("its own"), std::string::npos);
}

TEST(Recovery, EndsWithTheRestartsAnewToo) {
    Recovery recovery(1, Generation());
    EXPECT_EQ(recovery.after(own(true)).what, What::anew);
    EXPECT_EQ(recovery.after(own(true)).what, What::give_up);
}

TEST(Recovery, SaysBeforehandWhetherItGoesOn) {
    Recovery recovery(1, {});
    EXPECT_FALSE(recovery.goes_on_after(Life()));  // no checkpoint
    EXPECT_TRUE(recovery.goes_on_after(life(3)));
    EXPECT_TRUE(recovery.goes_on_after(life(3)));  // nothing has changed by asking
    EXPECT_EQ(recovery.restarts(), 0);
    recovery.after(life(3));
    EXPECT_FALSE(recovery.goes_on_after(life(4)));
}

}  // namespace
}  // namespace fermata::life
