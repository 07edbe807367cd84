// One value from one thread to another.
#include "lower/hand_over.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>

namespace fermata::lower {
namespace {

TEST(HandOver, IsTakenOnce) {
    HandOver<std::string> box;
    EXPECT_EQ(box.take(), nullptr);
    box.give("timers");
    auto taken = box.take();
    ASSERT_NE(taken, nullptr);
    EXPECT_EQ(*taken, "timers");
    EXPECT_EQ(box.take(), nullptr);
}

TEST(HandOver, WhatWasWrittenBeforeIsSeen) {
    for (int round = 0; round < 200; ++round) {
        HandOver<int> box;
        int beside = 0;
        std::thread giver([&] {
            beside = round;
            box.give(round);
        });
        std::unique_ptr<int> taken;
        while (!(taken = box.take())) std::this_thread::yield();
        EXPECT_EQ(*taken, round);
        EXPECT_EQ(beside, round);
        giver.join();
    }
}

}  // namespace
}  // namespace fermata::lower
