// The words of --levels.
#include "keeping/levels/words.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace fermata::keeping {
namespace {

TEST(Levels, WordsAreReadAndSaidAgain) {
    level::Levels levels = parse_levels("memory 30s, files 10m");
    EXPECT_EQ(levels.memory, 30);
    EXPECT_EQ(levels.files, 600);
    EXPECT_EQ(text_of(levels), "memory 30s, files 600s");
    EXPECT_EQ(text_of(parse_levels(text_of(levels))), text_of(levels));
    EXPECT_EQ(text_of(parse_levels(" files 1h ,memory 0.5s ")), "memory 0.5s, files 3600s");
    EXPECT_FALSE(parse_levels("memory 30s").files);
    EXPECT_FALSE(parse_levels("memory 30s").buddy);
    for (const char* words :
         {"memory 30s, buddy", "memory 30s, buddy 120s, files 600s", "memory 30s, buddy 120s anywhere",
          "memory 30s, buddy anywhere, files 60s", "memory 30s, rs:4+2 120s",
          "memory 30s, buddy, rs:1+1 30s, files 60s", "local 300s", "local 300s, files 3600s",
          "memory 30s, local 300s, buddy 120s, files 3600s"})
        EXPECT_EQ(text_of(parse_levels(words)), words);
    EXPECT_EQ(parse_levels("memory 30s, buddy").buddy, 0);
    EXPECT_TRUE(parse_levels("memory 30s"));
    EXPECT_FALSE(level::Levels());
    EXPECT_EQ(parse_levels("local 5m, memory 1m").first(), Medium::memory);
    EXPECT_EQ(parse_levels("local 5m, memory 1m").interval(), 60);
    EXPECT_EQ(parse_levels("local 5m").first(), Medium::local);
    EXPECT_EQ(parse_levels("local 5m").interval(), 300);
}

TEST(Levels, WhatCannotBeIsRefused) {
    for (const char* words : {"",
                              ",",
                              "memory",
                              "files 10m",
                              "memory 30s,",
                              "memory 30s 4",
                              "memory 0s",
                              "memory 30s, memory 10m",
                              "memory 30s, files 10s",
                              "disk 10m",
                              "local",
                              "local 30s, local 1m",
                              "local 30s, files 10s",
                              "local 30s, buddy 1m",
                              "local 30s, rs:4+2 1m",
                              "memory 30s, local 10s",
                              "memory x",
                              "buddy 1m",
                              "memory 30s, buddy 10s",
                              "memory 30s, buddy 0s",
                              "memory 30s, buddy 2m here",
                              "memory 30s, buddy 2m anywhere here",
                              "memory 30s anywhere",
                              "memory 30s, buddy, buddy 2m",
                              "memory 30s, buddy anywhere 2m",
                              "rs:4+2 10m",
                              "memory 30s, rs:4+2",
                              "memory 30s, rs: 1m",
                              "memory 30s, rs:4 1m",
                              "memory 30s, rs:0+2 1m",
                              "memory 30s, rs:4+0 1m",
                              "memory 30s, rs:200+2 1m",
                              "memory 30s, rs:4+2+1 1m",
                              "memory 30s, rs:4+2 10s",
                              "memory 30s, rs:4+2 1m 2m",
                              "memory:x 30s",
                              "memory 30s, rs 1m",
                              "memory 30s, rs:4+2 1m, rs:2+1 2m"})
        try {
            parse_levels(words);
            FAIL() << words;
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), ExitCode::usage) << words << ": " << error.what();
        }
}

TEST(Levels, AutoStandsAlone) {
    EXPECT_TRUE(parse_levels("auto").automatic);
    EXPECT_TRUE(parse_levels("auto"));
    EXPECT_FALSE(parse_levels("memory 1s").automatic);
    EXPECT_THROW(parse_levels("auto, files 1h"), Error);
    EXPECT_THROW(parse_levels("memory 1s, auto"), Error);
}

}  // namespace
}  // namespace fermata::keeping
