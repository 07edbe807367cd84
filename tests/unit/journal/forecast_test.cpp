// What a checkpoint will cost, by those that were measured.
#include "journal/forecast.h"

#include <gtest/gtest.h>

namespace fermata::journal {
namespace {

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
