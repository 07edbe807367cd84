#include <gtest/gtest.h>

#include "front/objects/group.h"
#include "front/objects/uid.h"

namespace fermata::front {
namespace {

using namespace ranks;

const Ranks kEven{0, 2, 4, 6}, kLow{3, 2, 1, 0};

TEST(Groups, UnionKeepsTheFirstAndAddsWhatIsNew) {
    EXPECT_EQ(united(kEven, kLow), (Ranks{0, 2, 4, 6, 3, 1}));
}
TEST(Groups, IntersectionIsInTheOrderOfTheFirst) {
    EXPECT_EQ(intersection(kEven, kLow), (Ranks{0, 2}));
    EXPECT_EQ(intersection(kLow, kEven), (Ranks{2, 0}));
}
TEST(Groups, Difference) {
    EXPECT_EQ(difference(kEven, kLow), (Ranks{4, 6}));
    EXPECT_TRUE(difference(kLow, kLow).empty());
}
TEST(Groups, Compare) {
    EXPECT_EQ(compare(kEven, kEven), Relation::same);
    EXPECT_EQ(compare(kEven, Ranks({6, 4, 2, 0})), Relation::similar);
    EXPECT_EQ(compare(kEven, kLow), Relation::different);
    EXPECT_EQ(compare({}, {}), Relation::same);
}

TEST(Groups, IncludeAndExcludeRefuseWhatIsOutOfRangeOrTwice) {
    Ranks result;
    const int some[] = {3, 0};
    ASSERT_TRUE(include(kEven, 2, some, &result));
    EXPECT_EQ(result, (Ranks{6, 0}));
    ASSERT_TRUE(exclude(kEven, 2, some, &result));
    EXPECT_EQ(result, (Ranks{2, 4}));
    const int outside[] = {4}, twice[] = {1, 1}, negative[] = {-1};
    EXPECT_FALSE(include(kEven, 1, outside, &result));
    EXPECT_FALSE(include(kEven, 2, twice, &result));
    EXPECT_FALSE(exclude(kEven, 1, negative, &result));
}

TEST(Groups, RangesAreWrittenOut) {
    Vec<int> positions;
    const int ranges[][3] = {{1, 7, 3}, {5, 2, -2}, {9, 9, 1}};
    ASSERT_TRUE(expand(3, ranges, &positions));
    EXPECT_EQ(positions, (Vec<int>{1, 4, 7, 5, 3, 9}));
    const int still[][3] = {{1, 7, 0}}, wrong_way[][3] = {{5, 2, 1}};
    EXPECT_FALSE(expand(1, still, &positions));
    EXPECT_FALSE(expand(1, wrong_way, &positions));
}

TEST(Groups, PositionsInLongListsAreThoseOfALinearSearch) {
    Ranks list;
    for (int i = 0; i < 1000; i++) list.push_back(i * 7919 % 1009);
    Position position(list);
    for (int world = -3; world < 1015; world++) EXPECT_EQ(position.of(world), find(list, world));
}

TEST(Uids, ChildrenOfOneCommunicatorDiffer) {
    EXPECT_NE(uid::derived(1, 1, 0), uid::derived(1, 2, 0));
    EXPECT_NE(uid::derived(1, 1, 0), uid::derived(1, 1, 1));  // parts of one split
    EXPECT_NE(uid::derived(1, 1, 0), uid::derived(2, 1, 0));
    EXPECT_LT(uid::derived(1, 1, 0), uid::kFresh >> 1);
    EXPECT_NE(uid::fresh(0, 1), uid::fresh(1, 1));
}

}  // namespace
}  // namespace fermata::front
