// The formula for several levels, with the numbers of its paper's first order.
#include "predict/levels.h"

#include <gtest/gtest.h>

#include <cmath>

namespace fermata::predict {
namespace {

constexpr double kDay = 86400;
const std::vector<LevelCost> kThree = {
    {"one", 2, 1 / (0.2 * kDay)}, {"two", 20, 1 / (2 * kDay)}, {"three", 300, 1 / (20 * kDay)}};

TEST(Plan, ThreeLevels) {
    const Plan plan = best_plan(kThree);
    EXPECT_NEAR(plan.loss, 0.04906, 0.00001);
    ASSERT_EQ(plan.levels.size(), 3u);
    EXPECT_NEAR(plan.levels[0].best, 262.9, 0.1);
    EXPECT_NEAR(plan.levels[1].best, 2629, 1);
    EXPECT_NEAR(plan.levels[2].best, 32199, 1);
    // As multiples of each other.
    EXPECT_NEAR(plan.levels[1].period / plan.levels[0].period, 10, 1e-9);
    EXPECT_NEAR(plan.levels[2].period / plan.levels[1].period, 12, 1e-9);
}

TEST(Plan, ALevelThatCostsMoreThanItSavesIsLeftOut) {
    std::vector<LevelCost> levels = kThree;
    levels[1].cost = 290;
    const Plan plan = best_plan(levels);
    ASSERT_EQ(plan.levels.size(), 2u);
    EXPECT_EQ(plan.levels[1].name, "three");
    EXPECT_NEAR(plan.levels[1].rate, levels[1].rate + levels[2].rate, 1e-12);
    EXPECT_NEAR(plan.loss, std::sqrt(2 * 2 * levels[0].rate) + std::sqrt(2 * 300 * plan.levels[1].rate),
                1e-9);
    levels[1].needed = true;
    EXPECT_EQ(best_plan(levels).levels.size(), 3u);
}

TEST(Plan, TheLastLevelStays) {
    const Plan plan = best_plan({{"cheap", 1, 1e-3}, {"dear", 1000, 1e-9}});
    ASSERT_EQ(plan.levels.size(), 2u);
    EXPECT_EQ(plan.levels[1].name, "dear");
    EXPECT_EQ(best_plan({{"only", 300, 1 / 3600.0}}).levels.size(), 1u);
}

}  // namespace
}  // namespace fermata::predict
