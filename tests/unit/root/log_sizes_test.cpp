// How large message logs are, as the root knows it.
#include "root/log_sizes.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace fermata::root {
namespace {

TEST(LogSizes, SayTheSumAndTheLargestAndAreNotedWhenDoubled) {
    LogSizes logs;
    EXPECT_EQ(logs.to_json()["largest"], -1);
    EXPECT_FALSE(logs.heard({0, 500, 0}));
    EXPECT_TRUE(logs.heard({3, 100, 1000}));
    EXPECT_FALSE(logs.heard({3, 200, 1999}));
    EXPECT_FALSE(logs.heard({3, 200, 0}));
    EXPECT_TRUE(logs.heard({3, 200, 2000}));
    EXPECT_FALSE(logs.heard({5, 0, 0}));
    const nlohmann::json all = logs.to_json();
    EXPECT_EQ(all["held"], 700);
    EXPECT_EQ(all["spilled"], 2000);
    EXPECT_EQ(all["largest"], 3);
    ASSERT_EQ(all["ranks"].size(), 2u) << "who holds nothing is not listed";
    EXPECT_EQ(all["ranks"][1], nlohmann::json({{"rank", 3}, {"held", 200}, {"spilled", 2000}}));
}

}  // namespace
}  // namespace fermata::root
