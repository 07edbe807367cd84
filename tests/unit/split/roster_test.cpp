// Who saves what of an object that several ranks have.
#include "split/shared/roster.h"

#include <gtest/gtest.h>

namespace fermata::split::shared {
namespace {

constexpr uint64_t kKiB = 1024;

Key key(uint64_t inode) { return {Kind::memory, 1, 2, inode}; }

Member member(uint32_t rank, uint64_t inode, Range part, uint32_t flags = kMapped | kWritable) {
    return {Rank(rank), {key(inode), flags, 0, part, part.end()}};
}

TEST(Roster, LowerRanksSaveWhatTheyHave) {
    std::vector<Member> all{member(2, 7, {4 * kKiB, 16 * kKiB}), member(0, 7, {0, 8 * kKiB}),
                            member(1, 7, {8 * kKiB, 12 * kKiB}), member(1, 9, {0, 4 * kKiB})};
    Roster last(Rank(2), all);
    const Object* object = last.find(key(7));
    ASSERT_TRUE(object);
    EXPECT_EQ(object->ranks, (std::vector{Rank(0), Rank(1), Rank(2)}));
    EXPECT_EQ(object->lower, (std::vector<Range>{{0, 12 * kKiB}}));
    EXPECT_EQ(object->mapped, (std::vector<Range>{{4 * kKiB, 16 * kKiB}}));
    EXPECT_EQ(object->covered, (std::vector<Range>{{0, 16 * kKiB}}));
    EXPECT_EQ(object->size, 16 * kKiB);
    EXPECT_FALSE(last.first(key(7)));
    EXPECT_FALSE(last.find(key(9)));
    Roster first(Rank(0), all);
    EXPECT_TRUE(first.first(key(7)));
    EXPECT_TRUE(first.find(key(7))->lower.empty());
    Roster alone(Rank(1), {member(1, 9, {0, 4 * kKiB})});
    EXPECT_FALSE(alone.with_others(key(9)));
}

TEST(Roster, AViewIsOfWhoWrites) {
    std::vector<Member> all{member(0, 7, {}, kMapped), member(1, 7, {0, 4 * kKiB})};
    Roster viewer(Rank(0), all);
    EXPECT_TRUE(viewer.find(key(7))->writable);
    EXPECT_TRUE(viewer.find(key(7))->mapped.empty() || viewer.find(key(7))->mapped[0].empty());
    EXPECT_TRUE(Roster(Rank(1), all).find(key(7))->lower.empty());
}

TEST(Roster, OpenersAndReaders) {
    std::vector<Member> all{member(3, 7, {}, kDescriptor | kReads), member(1, 7, {}, kDescriptor),
                            member(2, 7, {}, kDescriptor | kReads)};
    const Roster roster(Rank(3), all);
    EXPECT_EQ(roster.find(key(7))->opener, Rank(1));
    EXPECT_EQ(roster.find(key(7))->reader, Rank(2));
}

}  // namespace
}  // namespace fermata::split::shared
