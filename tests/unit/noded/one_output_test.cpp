// Output of a rank and of its copies as one stream.
#include "noded/one_output.h"

#include <gtest/gtest.h>

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
