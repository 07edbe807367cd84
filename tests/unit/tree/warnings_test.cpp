#include "tree/warnings.h"

#include <gtest/gtest.h>

namespace fermata::tree {
namespace {

using Lines = std::vector<std::string>;

TEST(Warnings, SameLineOfSeveralRanksIsSaidOnce) {
    Warnings warnings;
    for (int rank : {2, 0, 5, 1, 2}) warnings.add("rank " + std::to_string(rank) + ": a pipe: is lost");
    warnings.add("rank 7: other");
    warnings.add("of nobody");
    EXPECT_EQ(warnings.lines(), (Lines{"ranks 0-2, 5: a pipe: is lost", "rank 7: other", "of nobody"}));
}

TEST(Warnings, ManyAreCutOff) {
    Warnings warnings;
    for (int i = 0; i < 1000; ++i) warnings.add("rank 0: line " + std::to_string(i));
    EXPECT_EQ(warnings.lines().size(), 201u);
    EXPECT_EQ(warnings.lines().back(), "800 more warnings are in the job's output");
}

}  // namespace
}  // namespace fermata::tree
