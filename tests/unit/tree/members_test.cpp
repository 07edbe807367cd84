// Who is lost, and when.
#include "tree/members.h"

#include <gtest/gtest.h>

namespace fermata::tree {
namespace {

NodeInfo daemon(const std::string& host) { return {.host = host, .pid = 7, .addresses = host + ":1"}; }

TEST(Members, WhoHasLeftMayComeBackUntilTheJobIsOver) {
    Members members(2, Rhythm{});
    const int a = members.arrive(daemon("a"), 0), b = members.arrive(daemon("b"), 0);
    EXPECT_TRUE(members.here(a));
    EXPECT_TRUE(members.here(b));
    members.left(b, false, 100);
    EXPECT_TRUE(members.expire(1000).empty());
    members.expect_no_return(1000);
    const auto gone = members.expire(1000);
    ASSERT_EQ(gone.size(), 1u);
    EXPECT_EQ(gone[0].first, b);
    EXPECT_EQ(gone[0].second.host, "b");
    EXPECT_TRUE(members.whole());
}

TEST(Members, WhoHasLeftIsLostAfterASecond) {
    Members members(2, Rhythm{});
    const int a = members.arrive(daemon("a"), 0);
    EXPECT_TRUE(members.here(a));
    members.left(a, false, 100);
    EXPECT_TRUE(members.expire(1099).empty());
    EXPECT_EQ(members.expire(1100).size(), 1u);
}

}  // namespace
}  // namespace fermata::tree
