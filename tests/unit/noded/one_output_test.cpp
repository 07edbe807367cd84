// Output of a rank and of its copies as one stream.
#include "noded/one_output.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace fermata::noded {
namespace {

TEST(OneOutput, ACopyThatIsAheadGoesOnBehindTheRank) {
    OneOutput both;
    EXPECT_EQ(both.wrote("before "), "before ");
    both.copy_is_made();
    EXPECT_EQ(both.wrote("one "), "one ");
    EXPECT_EQ(both.copy_goes_on("one two "), "two ");
    EXPECT_EQ(both.wrote("three"), "three");
    EXPECT_FALSE(both.parted());
}

TEST(OneOutput, ACopyThatIsBehindSaysNothingTwice) {
    OneOutput both;
    both.copy_is_made();
    both.wrote("one two three ");
    EXPECT_EQ(both.copy_goes_on("one "), "");
    EXPECT_EQ(both.wrote("two th"), "");
    EXPECT_EQ(both.wrote("ree four"), "four");
    EXPECT_FALSE(both.parted());
}

TEST(OneOutput, ACopyOfACopyThatIsBehind) {
    OneOutput both;
    both.copy_is_made();
    both.wrote("one two three ");
    both.copy_goes_on("one ");
    both.copy_is_made();
    EXPECT_EQ(both.wrote("two "), "");
    EXPECT_EQ(both.copy_goes_on("two three four "), "four ");
    EXPECT_EQ(both.wrote("five"), "five");
    EXPECT_FALSE(both.parted());
}

TEST(OneOutput, DifferentOutputIsNoticed) {
    OneOutput ahead;
    ahead.copy_is_made();
    ahead.wrote("took 1.2 s");
    ahead.copy_goes_on("took 1.3 s");
    EXPECT_TRUE(ahead.parted());
    OneOutput behind;
    behind.copy_is_made();
    behind.wrote("took 1.2 s");
    behind.copy_goes_on("took ");
    EXPECT_FALSE(behind.parted());
    behind.wrote("1.3 s");
    EXPECT_TRUE(behind.parted());
}

TEST(OneOutput, ACopyOfAnotherNodeThatIsAhead) {
    OneOutput both;
    EXPECT_EQ(both.copy_goes_on_after(4, "one two "), "two ");
    EXPECT_EQ(both.wrote("three"), "three");
    EXPECT_EQ(both.written(), 13u);
    EXPECT_FALSE(both.parted());
}

TEST(OneOutput, ACopyOfAnotherNodeThatIsBehind) {
    OneOutput both;
    EXPECT_EQ(both.copy_goes_on_after(14, "one "), "");
    EXPECT_EQ(both.written(), 4u) << "from where a copy of it would begin";
    EXPECT_EQ(both.wrote("two th"), "");
    EXPECT_EQ(both.wrote("ree four"), "four");
    EXPECT_EQ(both.wrote(" five"), " five");
    EXPECT_EQ(both.written(), 23u);
}

// It had not caught up when a copy on its own node was made, and that one takes its place.
TEST(OneOutput, ACopyOfAnotherNodeAndOneOfThisNode) {
    OneOutput both;
    EXPECT_EQ(both.copy_goes_on_after(14, "one "), "");
    both.copy_is_made();
    EXPECT_EQ(both.wrote("two "), "");
    EXPECT_EQ(both.copy_goes_on("t"), "");
    EXPECT_EQ(both.written(), 5u);
    EXPECT_EQ(both.wrote("wo three four"), "four");
    EXPECT_FALSE(both.parted());
}

TEST(OneOutput, WhatIsWrittenIsCountedOverBoth) {
    OneOutput both;
    both.wrote("before ");
    both.copy_is_made();
    both.wrote("one two ");
    EXPECT_EQ(both.written(), 15u);
    both.copy_goes_on("one ");
    EXPECT_EQ(both.written(), 11u);
}

TEST(Spool, WhatIsBeyondTheBoundIsInAFileAndComesBackInOrder) {
    Spool spool(1000);
    std::string all;
    for (int i = 0; i < 500; ++i) {
        const std::string piece = std::to_string(i * i) + " ";
        spool.append(piece);
        all += piece;
    }
    EXPECT_EQ(spool.size(), all.size());
    EXPECT_GT(spool.in_file(), all.size() - 1001);
    std::string read;
    while (read.size() < all.size()) read += spool.read(read.size(), 77);
    EXPECT_EQ(read, all);
    EXPECT_EQ(spool.read(all.size(), 10), "");
    spool.drop_oldest(100);
    EXPECT_EQ(spool.read(0, 50), all.substr(100, 50));
    spool.drop_oldest(spool.in_file() + 5);
    EXPECT_EQ(spool.in_file(), 0u);
    EXPECT_EQ(spool.read(0, 5000), all.substr(all.size() - spool.size()));
    spool.append(std::string(2000, 'x'));
    EXPECT_EQ(spool.read(spool.size() - 1, 1), "x");
    spool.clear();
    EXPECT_EQ(spool.size(), 0u);
    spool.append("again");
    EXPECT_EQ(spool.read(0, 10), "again");
}

TEST(Spool, WithoutAPlaceForFilesItStaysInMemory) {
    ::setenv("TMPDIR", "/proc", 1);
    Spool spool(10);
    for (int i = 0; i < 3; ++i) spool.append("more than ten bytes");
    ::unsetenv("TMPDIR");
    EXPECT_EQ(spool.in_file(), 0u);
    EXPECT_EQ(spool.read(0, 100), "more than ten bytesmore than ten bytesmore than ten bytes");
}

TEST(OneOutput, WithoutACopyNothingIsKept) {
    OneOutput both;
    both.copy_is_made();
    both.wrote("one");
    both.copy_is_gone();
    both.copy_is_made();
    both.wrote("two");
    EXPECT_EQ(both.copy_goes_on("two"), "");
    EXPECT_FALSE(both.parted());
}

}  // namespace
}  // namespace fermata::noded
