#include <gtest/gtest.h>

#include "front/objects/group.h"
#include "front/objects/uid.h"

namespace fermata::front {
namespace {

using namespace ranks;

Members of(std::initializer_list<uint32_t> ranks) {
    Members members;
    for (uint32_t rank : ranks) members.push_back(Rank(rank));
    return members;
}
const Members kEven = of({0, 2, 4, 6}), kLow = of({3, 2, 1, 0});

TEST(Groups, UnionKeepsTheFirstAndAddsWhatIsNew) { EXPECT_EQ(united(kEven, kLow), of({0, 2, 4, 6, 3, 1})); }
TEST(Groups, IntersectionIsInTheOrderOfTheFirst) {
    EXPECT_EQ(intersection(kEven, kLow), of({0, 2}));
    EXPECT_EQ(intersection(kLow, kEven), of({2, 0}));
}
TEST(Groups, Difference) {
    EXPECT_EQ(difference(kEven, kLow), of({4, 6}));
    EXPECT_TRUE(difference(kLow, kLow).empty());
}
TEST(Groups, Compare) {
    EXPECT_EQ(compare(kEven, kEven), Relation::same);
    EXPECT_EQ(compare(kEven, of({6, 4, 2, 0})), Relation::similar);
    EXPECT_EQ(compare(kEven, kLow), Relation::different);
    EXPECT_EQ(compare({}, {}), Relation::same);
}

TEST(Groups, IncludeAndExcludeRefuseWhatIsOutOfRangeOrTwice) {
    Members result;
    const int some[] = {3, 0};
    ASSERT_TRUE(include(kEven, 2, some, &result));
    EXPECT_EQ(result, of({6, 0}));
    ASSERT_TRUE(exclude(kEven, 2, some, &result));
    EXPECT_EQ(result, of({2, 4}));
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
    Members list;
    for (int i = 0; i < 1000; i++) list.push_back(Rank(static_cast<uint32_t>(i * 7919 % 1009)));
    Position position(list);
    for (uint32_t rank = 0; rank < 1015; rank++) EXPECT_EQ(position.of(Rank(rank)), find(list, Rank(rank)));
}

TEST(Members, AStrangerIsNoRank) {
    const Member first = Member::stranger(0), second = Member::stranger(1), rank = Rank(0);
    EXPECT_TRUE(first.is_stranger() && second.is_stranger());
    EXPECT_FALSE(rank.is_stranger() || rank == first || first == second);
    EXPECT_EQ(second.which_stranger(), 1);
    EXPECT_EQ(rank.rank(), Rank(0));
    EXPECT_DEATH(first.rank(), "a process outside of the job");
}

TEST(Uids, ChildrenOfOneCommunicatorDiffer) {
    EXPECT_NE(uid::derived(1, 1, Rank(0)), uid::derived(1, 2, Rank(0)));
    EXPECT_NE(uid::derived(1, 1, Rank(0)), uid::derived(1, 1, Rank(1)));  // parts of one split
    EXPECT_NE(uid::derived(1, 1, Rank(0)), uid::derived(2, 1, Rank(0)));
    EXPECT_LT(uid::derived(1, 1, Rank(0)), uid::kFresh >> 1);
    EXPECT_NE(uid::fresh(Rank(0), 1), uid::fresh(Rank(1), 1));
}

}  // namespace
}  // namespace fermata::front
