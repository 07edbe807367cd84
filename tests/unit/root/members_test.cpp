// The table of members, and the words that say which ranks have copies.
#include "root/plan/members.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "root/plan/replicas.h"
#include "root/plan/takeovers.h"
#include "root/plan/written.h"

namespace fermata::root {
namespace {

tree::Ranks ranks(std::initializer_list<int32_t> numbers) {
    tree::Ranks all;
    for (int32_t one : numbers) all.add(tree::Ranks(one));
    return all;
}

TEST(Members, KnowWhoHasACopyAndWhyNot) {
    Members members;
    EXPECT_TRUE(members.want(ranks({0, 1, 3})).empty());
    EXPECT_EQ(members.lacking(), ranks({0, 1, 3}));
    EXPECT_TRUE(members.made(0, {10, "a"}));
    EXPECT_TRUE(members.refused(1, "it has a socket"));
    EXPECT_FALSE(members.refused(1, "it has a socket")) << "said twice";
    EXPECT_TRUE(members.refused(1, "it has a pipe"));
    EXPECT_EQ(members.had(), ranks({0}));
    EXPECT_EQ(members.lacking(), ranks({1, 3}));
    EXPECT_EQ(members.copy_of(0)->pid, 10);
    EXPECT_EQ(members.copy_of(1), nullptr);
    EXPECT_EQ(members.why_none(1), "it has a pipe");
    EXPECT_TRUE(members.is_refused(1));
    EXPECT_EQ(members.why_none(3), "");
    members.made(1, {11, "a"});
    EXPECT_EQ(members.why_none(1), "");
}

TEST(Members, KnowOnWhichNodeACopyIs) {
    Members members;
    members.want(ranks({0, 1, 2}));
    members.made(0, {10, "a", 1});
    members.made(1, {11, "b", 2});
    members.made(2, {12, "b", 2});
    EXPECT_EQ(members.copies_on(2), ranks({1, 2}));
    members.promoted(1);
    members.ended(2, 12, "its node is lost");
    EXPECT_TRUE(members.copies_on(2).empty());
    EXPECT_FALSE(members.is_refused(2)) << "made again elsewhere";
    EXPECT_EQ(members.copies_on(1), ranks({0}));
    EXPECT_EQ(members.lacking(), ranks({1, 2}));
}

TEST(Written, SinceTheCopyWasMade) {
    Written written;
    written.add(1, false, 100);
    written.add(1, true, 7);
    written.copied(1, {90, 7});
    written.add(1, false, 5);
    EXPECT_EQ(written.moved(1), (Written::Bytes{15, 0}));
    // Where the copy is, it is counted from where it was made; it has not written all of that again yet.
    written.copied(1, {12, 0});
    written.add(1, true, 3);
    EXPECT_EQ(written.moved(1), (Written::Bytes{3, 3}));
    EXPECT_EQ(written.moved(2), (Written::Bytes{0, 0}));
}

TEST(Takeovers, EachIsToldOnceAndNotTooEarly) {
    Takeovers all;
    EXPECT_FALSE(all.any());
    all.add({3, 1, 100, "b", "was killed", "", false});
    all.add({4, 2, 200, "b", "was killed", "", false});
    EXPECT_TRUE(all.due(99).empty());
    ASSERT_EQ(all.due(100).size(), 1u);
    ASSERT_EQ(all.due(200).size(), 1u) << "the first one has been told";
    EXPECT_EQ(all.to(1), ranks({3}));
    EXPECT_EQ(all.over(4).from, "b");
    EXPECT_EQ(all.over(4).rank, -1);
    EXPECT_TRUE(all.any());
    all.over(3);
    EXPECT_FALSE(all.any());
}

TEST(Members, AreAnotherEpochWhenOneIsGone) {
    Members members;
    members.want(ranks({0, 1}));
    members.made(0, {10, "a"});
    members.made(1, {11, "a"});
    const uint32_t begun = members.epoch();
    EXPECT_FALSE(members.ended(0, 9, "an earlier one"));
    EXPECT_EQ(members.epoch(), begun);
    EXPECT_TRUE(members.ended(0, 10, "was killed"));
    EXPECT_EQ(members.epoch(), begun + 1);
    EXPECT_EQ(members.why_none(0), "was killed");
    members.promoted(1);
    EXPECT_EQ(members.epoch(), begun + 2);
    EXPECT_TRUE(members.had().empty());
    EXPECT_FALSE(members.ended(1, 11, "it leads")) << "it is no copy any more";
    members.renewed();
    EXPECT_EQ(members.epoch(), begun + 3);
}

TEST(Members, OneThatIsNotWantedIsToEnd) {
    Members members;
    members.want(ranks({0, 1}));
    members.made(0, {10, "a"});
    EXPECT_EQ(members.want(ranks({1, 2})), ranks({0}));
    EXPECT_FALSE(members.made(3, {13, "a"}));
    EXPECT_EQ(members.lacking(), ranks({1, 2}));
}

TEST(Replicas, WordsOfTheOption) {
    EXPECT_EQ(replicated("all", 4), ranks({0, 1, 2, 3}));
    EXPECT_EQ(replicated("50%", 4), ranks({0, 2}));
    EXPECT_EQ(replicated("25%", 4), ranks({0}));
    EXPECT_EQ(replicated("26%", 4), ranks({0, 2})) << "no fewer than asked for";
    EXPECT_EQ(replicated("3", 4), ranks({0, 1, 2}));
    EXPECT_EQ(replicated("0", 4), ranks({}));
    EXPECT_EQ(replicated("0,2-3", 4), ranks({0, 2, 3}));
    for (const char* wrong : {"", "some", "5", "101%", "0,4", "2-1", "-", "1-", ",", "%"})
        EXPECT_THROW(replicated(wrong, 4), Error) << wrong;
}

TEST(Replicas, WordsOfRanksSayThem) {
    for (const tree::Ranks& some : {ranks({}), ranks({0}), ranks({3}), ranks({1, 2}), ranks({0, 2, 3})})
        EXPECT_EQ(replicated(words_of(some), 4), some) << words_of(some);
}

TEST(Replicas, WordsThatChangeIt) {
    const tree::Ranks now = ranks({0, 2});
    EXPECT_EQ(replicated("+3", 4, now), ranks({0, 2, 3}));
    EXPECT_EQ(replicated("+0-1", 4, now), ranks({0, 1, 2}));
    EXPECT_EQ(replicated("-2", 4, now), ranks({0}));
    EXPECT_EQ(replicated("-0-3", 4, now), ranks({}));
    EXPECT_EQ(replicated("-all", 4, now), ranks({}));
    EXPECT_EQ(replicated("+50%", 4, ranks({1})), ranks({0, 1, 2}));
    EXPECT_EQ(replicated("1", 4, now), ranks({0}));
    for (const char* wrong : {"+", "-", "+4", "-0,9", "++1", "-x", "", "5"})
        EXPECT_THROW(replicated(wrong, 4, now), Error) << wrong;
}

}  // namespace
}  // namespace fermata::root
