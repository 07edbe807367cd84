// The words of --levels.
#include "level/levels.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace fermata::level {
namespace {

TEST(Levels, WordsAreReadAndSaidAgain) {
    Levels levels = Levels::parse("memory 30s, files 10m");
    EXPECT_EQ(levels.memory, 30);
    EXPECT_EQ(levels.files, 600);
    EXPECT_EQ(levels.to_text(), "memory 30s, files 600s");
    EXPECT_EQ(Levels::parse(levels.to_text()).to_text(), levels.to_text());
    EXPECT_EQ(Levels::parse(" files 1h ,memory 0.5s ").to_text(), "memory 0.5s, files 3600s");
    EXPECT_FALSE(Levels::parse("memory 30s").files);
    EXPECT_FALSE(Levels::parse("memory 30s").buddy);
    for (const char* words :
         {"memory 30s, buddy", "memory 30s, buddy 120s, files 600s", "memory 30s, buddy 120s anywhere",
          "memory 30s, buddy anywhere, files 60s", "memory 30s, rs:4+2 120s",
          "memory 30s, buddy, rs:1+1 30s, files 60s", "local 300s", "local 300s, files 3600s",
          "memory 30s, local 300s, buddy 120s, files 3600s"})
        EXPECT_EQ(Levels::parse(words).to_text(), words);
    EXPECT_EQ(Levels::parse("memory 30s, buddy").buddy, 0);
    EXPECT_TRUE(Levels::parse("memory 30s"));
    EXPECT_FALSE(Levels());
    EXPECT_EQ(Levels::parse("local 5m, memory 1m").first(), Medium::memory);
    EXPECT_EQ(Levels::parse("local 5m, memory 1m").interval(), 60);
    EXPECT_EQ(Levels::parse("local 5m").first(), Medium::local);
    EXPECT_EQ(Levels::parse("local 5m").interval(), 300);
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
                              "memory 30s, rs:4+2 1m, rs:2+1 2m"})
        try {
            Levels::parse(words);
            FAIL() << words;
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), ExitCode::usage) << words << ": " << error.what();
        }
}

TEST(Levels, AutoStandsAlone) {
    EXPECT_TRUE(Levels::parse("auto").automatic);
    EXPECT_TRUE(Levels::parse("auto"));
    EXPECT_FALSE(Levels::parse("memory 1s").automatic);
    EXPECT_THROW(Levels::parse("auto, files 1h"), Error);
    EXPECT_THROW(Levels::parse("memory 1s, auto"), Error);
}

}  // namespace
}  // namespace fermata::level
