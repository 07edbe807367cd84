// Output of a rank in pieces that end at a line's end, as long as somebody writes lines.
#include "noded/output_lines.h"

#include <gtest/gtest.h>

namespace fermata::noded {
namespace {

TEST(OutputLines, GoWhole) {
    OutputLines lines;
    lines.add("one\ntw", 0);
    EXPECT_EQ(lines.take(0), "one\n");
    EXPECT_EQ(lines.take(0), "");
    lines.add("o\n", 10);
    EXPECT_EQ(lines.take(10), "two\n");
    EXPECT_EQ(lines.size(), 0u);
    EXPECT_EQ(lines.rest(10), -1);
}

TEST(OutputLines, ABegunLineGoesAfterAMoment) {
    OutputLines lines;
    lines.add("Name? ", 100);
    EXPECT_EQ(lines.take(100 + OutputLines::kPatienceMs - 1), "");
    EXPECT_EQ(lines.rest(100), OutputLines::kPatienceMs);
    EXPECT_EQ(lines.take(100 + OutputLines::kPatienceMs), "Name? ");
}

TEST(OutputLines, TheEndNeedsNoLine) {
    OutputLines lines;
    lines.add("last", 0);
    lines.end();
    EXPECT_EQ(lines.take(0), "last");
    EXPECT_EQ(lines.take(0), "");
}

TEST(OutputLines, NothingIsLostOfLongLines) {
    OutputLines lines;
    std::string all, got;
    for (int i = 0; i < 1000; ++i) {
        std::string piece(static_cast<size_t>(i * 37 % 5000), static_cast<char>('a' + i % 26));
        if (i % 3 == 0) piece += "\n";
        all += piece;
        lines.add(piece, i);
        for (std::string one; !(one = lines.take(i)).empty();) {
            EXPECT_LE(one.size(), OutputLines::kLongest);
            got += one;
        }
    }
    lines.end();
    for (std::string one; !(one = lines.take(1000)).empty();) got += one;
    EXPECT_EQ(got, all);
}

}  // namespace
}  // namespace fermata::noded
