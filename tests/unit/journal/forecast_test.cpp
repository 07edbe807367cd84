// What a checkpoint will cost: Daly's formula against its table, the last one before the end of the wall
// time.
#include "journal/forecast.h"

#include <gtest/gtest.h>

#include <cmath>

namespace fermata::journal {
namespace {

// Cost, mean time between failures, Daly's interval, the exact optimum.
TEST(Forecast, DalysIntervalIsThatOfHisTable) {
    constexpr double kTable[][4] = {{60, 3600, 617.88, 617.89},     {300, 86400, 7001.39, 7001.40},
                                    {600, 86400, 9786.27, 9786.33}, {1200, 21600, 6422.22, 6423.23},
                                    {300, 3600, 1276.50, 1276.88},  {1800, 14400, 6050, 6053.42}};
    for (auto& [cost, mtbf, daly, exact] : kTable) {
        EXPECT_NEAR(best_interval(cost, mtbf), daly, 0.01) << cost << ", " << mtbf;
        // (1 - tau / M) e^(tau / M) = e^(-C / M)
        EXPECT_NEAR((1 - exact / mtbf) * std::exp(exact / mtbf), std::exp(-cost / mtbf), 1e-5);
    }
    EXPECT_EQ(best_interval(7200, 3600), 3600);  // as much as two of them: no interval is good
    EXPECT_EQ(best_interval(9000, 3600), 3600);
}

Measured measured(double until_saving, double writing, uint64_t bytes) {
    Measured one;
    one.until_saving = until_saving;
    one.writing = writing;
    one.standing = writing;
    one.bytes = bytes;
    return one;
}

TEST(Forecast, AForkedWriterCostsWhatItSlowsDown) {
    Measured one = measured(1, 100, 1 << 30);
    EXPECT_EQ(one.cost(), 100);
    one.standing = 0.5;
    one.behind = 100;
    EXPECT_DOUBLE_EQ(one.cost(), 0.5 + 100 * Measured::kSlowDown);
    EXPECT_EQ(one.seconds(), 101);
}

TEST(Forecast, NothingIsKnownFromNothing) {
    Forecast forecast;
    EXPECT_FALSE(forecast.next());
    EXPECT_FALSE(forecast.cost());
}

TEST(Forecast, TakesTheWorstOfEachPart) {
    Forecast forecast;
    forecast.learn(measured(1, 10, 1000));
    EXPECT_DOUBLE_EQ(forecast.next()->seconds, 11);
    EXPECT_DOUBLE_EQ(forecast.next()->margin, 11 + 2);  // one alone may be an exception
    forecast.learn(measured(5, 8, 1000));               // came late to the safe state, wrote faster
    EXPECT_DOUBLE_EQ(forecast.next()->seconds, 5 + 10);
    EXPECT_DOUBLE_EQ(forecast.next()->bandwidth, 100);
    EXPECT_DOUBLE_EQ(forecast.next()->margin, 0.75 * 15 + 2);
}

TEST(Forecast, AnIncrementIsNotTheNextOnesSize) {
    Forecast forecast;
    forecast.learn(measured(1, 10, 1000));
    for (int i = 0; i < 8; ++i) forecast.learn(measured(1, 1, 10));  // 10 bytes a second: says nothing
    EXPECT_EQ(forecast.next()->bytes, 1000u);
    EXPECT_DOUBLE_EQ(forecast.next()->seconds, 11);
}

TEST(Forecast, WhatGrowsGrowsOn) {
    Forecast forecast;
    forecast.learn(measured(0, 10, 1000));
    forecast.learn(measured(0, 15, 1500));
    EXPECT_EQ(forecast.next()->bytes, 2250u);
    EXPECT_DOUBLE_EQ(forecast.next()->seconds, 22.5);
    forecast.learn(measured(0, 150, 15000));  // tenfold is not taken for a habit
    EXPECT_EQ(forecast.next()->bytes, 30000u);
}

TEST(Forecast, ForgetsWhatIsLongAgo) {
    Forecast forecast;
    forecast.learn(measured(50, 100, 1000));
    for (int i = 0; i < 16; ++i) forecast.learn(measured(1, 10, 1000));
    EXPECT_DOUBLE_EQ(forecast.next()->seconds, 11);
}

}  // namespace
}  // namespace fermata::journal
