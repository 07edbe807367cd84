#include <gtest/gtest.h>

#include "front/objects/info.h"

namespace fermata::front {
namespace {

TEST(Infos, KeepTheOrderOfFirstSetting) {
    InfoPairs pairs;
    info_put(&pairs, "b", "1");
    info_put(&pairs, "a", "2");
    info_put(&pairs, "b", "3");
    ASSERT_EQ(pairs.size(), 2u);
    EXPECT_EQ(pairs[0].key, "b");
    EXPECT_EQ(*info_find(pairs, "b"), "3");
    EXPECT_TRUE(info_remove(&pairs, "b"));
    EXPECT_FALSE(info_remove(&pairs, "b"));
    EXPECT_EQ(info_find(pairs, "b"), nullptr);
    EXPECT_EQ(pairs[0].key, "a");
}

}  // namespace
}  // namespace fermata::front
