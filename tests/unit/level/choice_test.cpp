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

Move moved(const NodePlace& from, const std::string& to, std::vector<uint32_t> ranks) {
    return {from, to, std::move(ranks)};
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
        choice.has({"x"}, Generation(number), 0, {10, "a"});
        choice.has({"y"}, Generation(number), 1, {20, "b"});
    }
    EXPECT_EQ(choice.verdict().candidate, 0u);
    EXPECT_EQ(choice.verdict().lost, "");
}

TEST(Choice, NeverAMixOfGenerations) {
    Choice choice = with_all({in_memory(7), in_memory(6), in_files(5)});
    choice.has({"x"}, Generation(7), 0, {10, "a"});
    choice.has({"y"}, Generation(6), 1, {20, "b"});
    EXPECT_EQ(choice.verdict().candidate, 2u);
    EXPECT_EQ(choice.verdict().lost,
              "gen-000007: the image of rank 1 was in the memory of y, and is not there any more; "
              "gen-000006: the image of rank 0 was in the memory of x, and is not there any more");
}

TEST(Choice, AnotherImageThanTheManifestNamesIsNone) {
    Choice choice = with_all({in_memory(7)});
    choice.has({"x"}, Generation(7), 0, {10, "a"});
    choice.has({"y"}, Generation(7), 1, {20, "c"});
    EXPECT_FALSE(choice.verdict().candidate);
    EXPECT_NE(choice.verdict().lost.find("rank 1"), std::string::npos);
}

TEST(Choice, ABrokenImageInFilesComesFromANodeOrTheOlderOneIsTaken) {
    Candidate broken = in_files(7);
    broken.broken[1] = "it is cut";
    Choice choice = with_all({broken, in_files(5)});
    EXPECT_EQ(choice.verdict().candidate, 1u);
    EXPECT_EQ(choice.verdict().lost, "gen-000007: it is cut, and no node has another copy");
    choice.has({"x"}, Generation(7), 1, {20, "c"});  // another one
    EXPECT_EQ(choice.verdict().candidate, 1u);
    choice.has({"x"}, Generation(7), 1, {20, "b"});
    Choice::Verdict verdict = choice.verdict();
    EXPECT_EQ(verdict.candidate, 0u);
    EXPECT_EQ(verdict.moves, (std::vector<Move>{moved({"x"}, "y", {1})}));
    EXPECT_EQ(choice.taken(verdict), "gen-000007: the image of rank 1 from the memory of x");
    choice.failed(Generation(7), verdict.moves[0], "no connection");
    EXPECT_EQ(choice.verdict().candidate, 1u);
}

TEST(Choice, ARankThatHasMovedGetsItsImage) {
    Choice choice({in_memory(7)});
    choice.waits("y", 0);
    choice.waits("y", 1);
    choice.has({"x"}, Generation(7), 0, {10, "a"});
    choice.has({"y"}, Generation(7), 1, {20, "b"});
    Choice::Verdict verdict = choice.verdict();
    EXPECT_EQ(verdict.candidate, 0u);
    EXPECT_EQ(verdict.moves, (std::vector<Move>{moved({"x"}, "y", {0})}));
    EXPECT_EQ(verdict.lost, "");
    EXPECT_EQ(choice.taken(verdict), "gen-000007: the image of rank 0 from the memory of x");
    auto itself = [](const std::string& node) { return node; };
    EXPECT_FALSE(choice.twice(verdict, itself));  // that of rank 1 is in one place only
    choice.has({"x"}, Generation(7), 1, {20, "b"});
    EXPECT_TRUE(choice.twice(verdict, itself));
    EXPECT_FALSE(choice.twice(verdict, [](const std::string&) { return "one switch"; }));
}

TEST(Choice, ABuddyHasWhatANodeHasLost) {
    Choice choice({in_memory(7), in_files(5)});
    choice.waits("x", 0);
    choice.waits("z", 1);  // y is gone
    choice.has({"x"}, Generation(7), 0, {10, "a"});
    choice.has({"x"}, Generation(7), 1, {20, "b"});
    Choice::Verdict verdict = choice.verdict();
    EXPECT_EQ(verdict.moves, (std::vector<Move>{moved({"x"}, "z", {1})}));
    EXPECT_EQ(choice.taken(verdict), "gen-000007: the image of rank 1 from the memory of x, its buddy");
    // It breaks on the way: the next generation, and why.
    choice.failed(Generation(7), verdict.moves[0], "z: cannot reach x");
    verdict = choice.verdict();
    EXPECT_EQ(verdict.candidate, 1u);
    EXPECT_TRUE(verdict.moves.empty());
    EXPECT_EQ(verdict.lost, "gen-000007: rank 1: z: cannot reach x");
}

TEST(Choice, OfSeveralCopiesTheOneWhereItWasWrittenThenTheLeastAsked) {
    std::vector<ImageIs> images(4, {10, "a"});
    Choice choice({{Generation(7), LevelName::memory, images, {"a", "a", "gone", "gone"}}});
    for (uint32_t rank = 0; rank < 4; ++rank) {
        choice.waits("new", rank);
        for (const char* host : {"a", "b", "c"}) choice.has({host}, Generation(7), rank, {10, "a"});
    }
    const Choice::Verdict verdict = choice.verdict();
    EXPECT_EQ(verdict.moves, (std::vector<Move>{moved({"a"}, "new", {0, 1}), moved({"b"}, "new", {2}),
                                                moved({"c"}, "new", {3})}));
    EXPECT_EQ(choice.taken(verdict),
              "gen-000007: the images of ranks 0,1 from the memory of a, the image of rank 2 from the memory "
              "of b, its buddy, the image of rank 3 from the memory of c, its buddy");
}

// A damaged image where the rank waits: no node says that it has it.
TEST(Choice, AnotherNodesCopyStandsInForADamagedOne) {
    Choice choice = with_all({in_memory(7)});
    choice.has({"x"}, Generation(7), 0, {10, "a"});
    choice.has({"x"}, Generation(7), 1, {20, "b"});
    EXPECT_EQ(choice.verdict().moves, (std::vector<Move>{moved({"x"}, "y", {1})}));
}

TEST(Choice, AnyMixOfMemoryAndLocalDirectoriesOfOneGeneration) {
    Choice choice = with_all({in_memory(7), in_files(5)});
    choice.has({"x", Medium::local}, Generation(7), 0, {10, "a"});
    choice.has({"y", Medium::memory}, Generation(7), 0, {10, "a"});
    choice.has({"y", Medium::memory}, Generation(7), 1, {20, "b"});
    choice.has({"y", Medium::local}, Generation(7), 1, {20, "b"});
    Choice::Verdict verdict = choice.verdict();
    EXPECT_EQ(verdict.candidate, 0u);
    // Its own node's disk goes before another one's memory.
    EXPECT_EQ(verdict.moves, (std::vector<Move>{moved({"x", Medium::local}, "x", {0})}));
    EXPECT_EQ(choice.taken(verdict), "gen-000007: the image of rank 0 from the local directory of x");
    EXPECT_TRUE(choice.is_in_local(choice.candidates()[0]));
    choice.failed(Generation(7), verdict.moves[0], "x: its checksum is wrong");
    verdict = choice.verdict();
    EXPECT_EQ(verdict.moves, (std::vector<Move>{moved({"y", Medium::memory}, "x", {0})}));
    EXPECT_FALSE(choice.is_in_local(choice.candidates()[0]));
    choice.failed(Generation(7), verdict.moves[0], "y: its checksum is wrong");
    EXPECT_EQ(choice.verdict().candidate, 1u);
}

TEST(Choice, WhatWasWrittenToLocalDirectoriesIsReadThere) {
    Candidate candidate{Generation(7), LevelName::local, {{10, "a"}, {20, "b"}}, {"x", "y"}};
    Choice choice = with_all({candidate});
    choice.has({"x", Medium::local}, Generation(7), 0, {10, "a"});
    EXPECT_EQ(choice.verdict().lost,
              "gen-000007: the image of rank 1 was in the local directory of y, and is not there any more");
    choice.has({"x", Medium::local}, Generation(7), 1, {20, "b"});
    EXPECT_EQ(choice.verdict().moves, (std::vector<Move>{moved({"x", Medium::local}, "y", {1})}));
}

}  // namespace
}  // namespace fermata::level
