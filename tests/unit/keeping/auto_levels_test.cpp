// `--levels auto`: nothing is planned before each level is measured, then by the formula.
#include "keeping/account/auto_levels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "keeping/levels/words.h"
#include "predict/interval.h"

namespace fermata::keeping {
namespace {

constexpr double kMtbf = 21'600;

Settings automatic() {
    Settings settings;
    settings.levels = parse_levels("auto");
    settings.mtbf = kMtbf;
    return settings;
}

TEST(AutoLevels, FirstEachLevelIsMeasured) {
    Settings settings = automatic();
    AutoLevels planned(settings);
    EXPECT_EQ(settings.interval, 60);
    EXPECT_EQ(settings.levels.rate(1e9, *settings.levels.buddy), 0u);  // at full speed
    EXPECT_EQ(settings.levels.rate(1e9, *settings.levels.files), 0u);
    planned.memory(0.5, 4'000'000'000);
    planned.files(4'000'000'000, 40);
    EXPECT_FALSE(planned.status().contains("levels"));
    EXPECT_EQ(settings.interval, 60);
    planned.buddies(4'000'000'000, 4);
    ASSERT_EQ(planned.status()["levels"].size(), 3u);
    // 0.5 s at 90 % of the failures; a tenth of 4 s at 9 %; a tenth of 40 s at 1 %.
    EXPECT_NEAR(settings.interval, std::sqrt(2 * 0.5 * kMtbf / 0.9), 0.01);
    EXPECT_EQ(settings.interval, *settings.levels.memory);
    const double files = *settings.levels.files / *settings.levels.buddy;
    EXPECT_NEAR(files, std::round(files), 1e-9);
    EXPECT_NEAR(*settings.levels.files, std::sqrt(2 * 4 * kMtbf / 0.01), *settings.levels.buddy);
    EXPECT_NEAR(planned.status()["loss"].get<double>(),
                std::sqrt(2 * 0.5 * 0.9 / kMtbf) + std::sqrt(2 * 0.4 * 0.09 / kMtbf) +
                    std::sqrt(2 * 4 * 0.01 / kMtbf),
                1e-9);
}

TEST(AutoLevels, WithoutBuddiesTheirFailuresNeedFiles) {
    Settings settings = automatic();
    AutoLevels planned(settings);
    planned.no_buddies("");  // there are some
    EXPECT_TRUE(settings.levels.buddy);
    planned.no_buddies("the job is on one node");
    EXPECT_FALSE(settings.levels.buddy);
    planned.memory(0.5, 1'000'000'000);
    planned.files(1'000'000'000, 10);
    EXPECT_NEAR(*settings.levels.files, std::sqrt(2 * 1 * kMtbf / 0.1), *settings.levels.memory);
    EXPECT_EQ(planned.status()["no_buddies"], "the job is on one node");
}

TEST(AutoLevels, AFirstCopyThatFailsLeavesThemOutALaterOneDoesNot) {
    Settings settings = automatic();
    AutoLevels planned(settings);
    planned.memory(0.5, 1'000'000'000);
    planned.files(1'000'000'000, 10);
    planned.buddies(1'000'000'000, 1);
    planned.buddies_failed("no room");
    EXPECT_EQ(planned.status()["levels"].size(), 3u);
    Settings other = automatic();
    AutoLevels without(other);
    without.buddies_failed("no room");
    without.memory(0.5, 1'000'000'000);
    without.files(1'000'000'000, 10);
    EXPECT_EQ(without.status()["levels"].size(), 2u);
}

TEST(AutoLevels, WhatIsCopiedSlowlySinceItMayIsNoMeasure) {
    Settings settings = automatic();
    AutoLevels planned(settings);
    planned.no_buddies("one node");
    planned.memory(0.5, 1'000'000'000);
    planned.files(1'000'000'000, 10);
    const double before = *settings.levels.files;
    planned.files(1'000'000'000, 900);
    EXPECT_EQ(*settings.levels.files, before);
    planned.memory(0.5, 4'000'000'000);  // four times as much: twice the period
    EXPECT_NEAR(*settings.levels.files / before, 2, 0.2);
}

TEST(AutoLevels, WithoutMemoryItIsAsIntervalAuto) {
    Settings settings = automatic();
    AutoLevels planned(settings);
    planned.no_memory(10);
    EXPECT_NEAR(settings.interval, predict::daly(10, kMtbf), 1e-9);
}

}  // namespace
}  // namespace fermata::keeping
