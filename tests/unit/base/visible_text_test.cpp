// Text of strangers for a terminal and for a shell, and the word that was meant.
#include <gtest/gtest.h>

#include <filesystem>

#include "base/error.h"
#include "base/text.h"

namespace fermata {
namespace {

TEST(Text, WhatMovesTheCursorIsMadeVisible) {
    EXPECT_EQ(visible("solver 3.1"), "solver 3.1");
    EXPECT_EQ(visible("Löser → ∑ 😀"), "Löser → ∑ 😀");
    EXPECT_EQ(visible("\033[2Ja\rb\nc\td\x7f"), "\\x1b[2Ja\\x0db\\x0ac\\x09d\\x7f");
    EXPECT_EQ(visible(std::string("a\0b", 3)), "a\\x00b");
    EXPECT_EQ(visible("\xc2\x9b"), "\\xc2\\x9b");                             // C1: CSI
    EXPECT_EQ(visible("\xe2\x80\xae"), "\\xe2\\x80\\xae");                    // right to left from here on
    EXPECT_EQ(visible("\xff\xc3"), "\\xff\\xc3");                             // no UTF-8
    EXPECT_EQ(visible("\xc0\xaf\xed\xa0\x80"), "\\xc0\\xaf\\xed\\xa0\\x80");  // too long, a surrogate
}

TEST(Text, AShellTakesItAsItIs) {
    EXPECT_EQ(shell_quoted("/a/b-c_1.d"), "/a/b-c_1.d");
    EXPECT_EQ(shell_quoted(""), "''");
    EXPECT_EQ(shell_quoted("a b"), "'a b'");
    EXPECT_EQ(shell_quoted("it's $HOME"), "'it'\\''s $HOME'");
}

TEST(Text, TheNearestWord) {
    std::vector<std::string> all = {"run", "restart", "checkpoint", "status", "list", "verify"};
    EXPECT_EQ(nearest("start", all), "restart");
    EXPECT_EQ(nearest("chekpoint", all), "checkpoint");
    EXPECT_EQ(nearest("lst", all), "list");
    EXPECT_EQ(nearest("foo", all), "");
    EXPECT_EQ(nearest("", all), "");
}

TEST(Text, NoExceptionOfALibraryIsShownRaw) {
    try {
        std::filesystem::directory_iterator("/nowhere/at/all");
        FAIL();
    } catch (const std::exception& error) {
        EXPECT_EQ(line_of(error), "cannot use /nowhere/at/all: No such file or directory");
    }
    EXPECT_EQ(line_of(std::bad_alloc()), "there is not enough memory");
    EXPECT_EQ(line_of(Error("as it is")), "as it is");
}

}  // namespace
}  // namespace fermata
