// A rank's own times: what it waits for others between its answers is in none of them.
#include "lower/rank_times.h"

#include <gtest/gtest.h>

#include "wire/times.h"

namespace fermata::lower {
namespace {

using Us = std::vector<uint64_t>;

TEST(RankTimes, OfASafeState) {
    RankTimes times(10'000, false);
    times.enter(Stage::converging, 11'000);
    times.heard(11'500);
    times.said(11'800);
    times.said(12'000);          // it has reported
    times.looked(true, 13'000);  // its report is there: others are waited for
    times.heard(14'000);
    times.looked(true, 14'500);
    times.looked(false, 17'000);
    times.said(17'100);  // it waits for something
    times.heard(17'200);
    times.looked(true, 18'500);
    times.said(18'600);          // it is safe
    times.looked(true, 29'000);  // and the program runs on, while others are not
    times.enter(Stage::calming, 30'000);
    times.said(31'000);  // no more of that
    times.enter(Stage::stopping, 32'000);
    times.enter(Stage::frozen, 36'000);
    times.enter(Stage::draining, 60'000);
    times.drained(2'000);
    times.enter(Stage::draining, 70'000);
    times.drained(1'000);
    times.enter(Stage::meeting, 80'000);
    times.enter(Stage::written, 99'000);
    EXPECT_EQ(times.in_us(7'000, 8'000), (Us{4, 6, 3, 7, 8}));
}

TEST(RankTimes, OfRanksThatStandAnywhere) {
    RankTimes times(10'000, true);
    times.enter(Stage::calming, 20'000);
    times.said(21'000);
    times.enter(Stage::stopping, 25'000);
    times.enter(Stage::frozen, 40'000);
    times.enter(Stage::frozen, 50'000);  // asked what it shares
    EXPECT_EQ(times.in_us(1'000, 2'000), (Us{0, 30, 0, 1, 2}));
}

TEST(RankTimes, AreBounded) {
    EXPECT_EQ(RankTimes(1, false).in_us(UINT64_MAX, 999), (Us{0, 0, 0, wire::kMostPhaseUs, 0}));
}

}  // namespace
}  // namespace fermata::lower
