// Which program a rank runs, from the command line that all ranks have.
#include "lower/command.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace fermata::lower {
namespace {

using Words = std::vector<std::string>;

TEST(Command, OneProgram) {
    Command command = command_in({"--argv0", "a", "--", "/bin/a", "-x", "--"}, 3);
    EXPECT_EQ(command.argv0, "a");
    EXPECT_EQ(command.program, "/bin/a");
    EXPECT_EQ(command.arguments, (Words{"-x", "--"}));
    EXPECT_EQ(command.number, -1);
    EXPECT_EQ(command_in({}, 0).program, "");
}

TEST(Command, EachRankHasItsPart) {
    const Words words = {"--parts", "1:3,2:2", "--", "/bin/a", "1:3", "--", "/bin/b"};
    EXPECT_EQ(command_in(words, 0).program, "/bin/a");
    EXPECT_EQ(command_in(words, 0).arguments, Words{"1:3"});
    EXPECT_EQ(command_in(words, 0).number, 0);
    for (int rank : {1, 2}) {
        EXPECT_EQ(command_in(words, rank).program, "/bin/b");
        EXPECT_TRUE(command_in(words, rank).arguments.empty());
        EXPECT_EQ(command_in(words, rank).number, 1);
    }
}

TEST(Command, WhoHasNoPartIsRefused) {
    EXPECT_THROW(command_in({"--parts", "1:2,1:2", "--", "a", "--", "b"}, 2), Error);
    EXPECT_THROW(command_in({"--parts", "1:2", "--", "a"}, -1), Error);
    for (const char* damaged : {"", "1", "1:", ":2", "1:9", "x:1", "1:2;"})
        EXPECT_THROW(command_in({"--parts", damaged, "--", "a"}, 0), Error) << damaged;
    EXPECT_THROW(command_in({"--parts"}, 0), Error);
}

}  // namespace
}  // namespace fermata::lower
