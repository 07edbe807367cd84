// The newest generation that can be had for all ranks.
#include "level/choice.h"

#include <gtest/gtest.h>

namespace fermata::level {
namespace {

using store::LevelName;

Candidate in_memory(uint32_t number) {
    return {Generation(number), LevelName::memory, {{10, "a"}, {20, "b"}}, {"x", "y"}};
}
Candidate in_files(uint32_t number) {
    return {Generation(number), LevelName::files, {{10, "a"}, {20, "b"}}, {}};
}

Choice with_all(std::vector<Candidate> candidates) {
    Choice choice(std::move(candidates));
    choice.waits("x", 0);
    choice.waits("y", 1);
    return choice;
}

TEST(Choice, TheNewestThatEachRankFindsWhereItIs) {
    Choice choice = with_all({in_memory(7), in_memory(6), in_files(5)});
    for (uint32_t number : {6u, 7u}) {
        choice.has("x", Generation(number), 0, {10, "a"});
        choice.has("y", Generation(number), 1, {20, "b"});
    }
    EXPECT_EQ(choice.verdict().candidate, 0u);
    EXPECT_EQ(choice.verdict().lost, "");
}

TEST(Choice, NeverAMixOfGenerations) {
    Choice choice = with_all({in_memory(7), in_memory(6), in_files(5)});
    choice.has("x", Generation(7), 0, {10, "a"});
    choice.has("y", Generation(6), 1, {20, "b"});
    EXPECT_EQ(choice.verdict().candidate, 2u);
    EXPECT_EQ(choice.verdict().lost,
              "gen-000007: the image of rank 1 was in the memory of y, and is not there any more; "
              "gen-000006: the image of rank 0 was in the memory of x, and is not there any more");
}

TEST(Choice, AnotherImageThanTheManifestNamesIsNone) {
    Choice choice = with_all({in_memory(7)});
    choice.has("x", Generation(7), 0, {10, "a"});
    choice.has("y", Generation(7), 1, {20, "c"});
    EXPECT_FALSE(choice.verdict().candidate);
    EXPECT_NE(choice.verdict().lost.find("rank 1"), std::string::npos);
}

TEST(Choice, ARankThatHasMovedDoesNotFindItsImage) {
    Choice choice({in_memory(7)});
    choice.waits("y", 0);
    choice.waits("y", 1);
    choice.has("x", Generation(7), 0, {10, "a"});
    choice.has("y", Generation(7), 1, {20, "b"});
    EXPECT_FALSE(choice.verdict().candidate);
    EXPECT_EQ(choice.verdict().lost, "gen-000007: rank 0 is on y now, and its image in the memory of x");
}

}  // namespace
}  // namespace fermata::level
