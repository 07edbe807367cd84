#include "base/text.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace fermata {
namespace {

TEST(Duration, IsReadAsPeopleWriteIt) {
    for (auto& [text, seconds] : std::vector<std::pair<const char*, double>>{{"0.2s", 0.2},
                                                                             {"500ms", 0.5},
                                                                             {"10m", 600},
                                                                             {"15min", 900},
                                                                             {"1h30m", 5400},
                                                                             {"2d", 172800},
                                                                             {"7", 7},
                                                                             {"0", 0},
                                                                             {"1e3", 1000},
                                                                             {"36525d", kLongestDuration}})
        EXPECT_DOUBLE_EQ(parse_duration(text, "--x"), seconds) << text;
}

TEST(Duration, RefusesInOneLineWhatIsNone) {
    for (const char* text : {"", "s", "-1", "-1s", "nan", "nans", "inf", "infinity", "1e20d", "1e18",
                             "36525.1d", "1e308d1e308d", "1y", "1 h", "99999d", "1h-1m"}) {
        try {
            double seconds = parse_duration(text, "--x");
            ADD_FAILURE() << text << " is taken for " << seconds;
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), ExitCode::usage) << text;
            EXPECT_TRUE(std::string(error.what()).starts_with("--x: '" + std::string(text) + "'"))
                << error.what();
            EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
        }
    }
}

TEST(Sizes, InDecimalAndBinaryUnits) {
    EXPECT_EQ(parse_bytes("16", "--x"), 16);
    EXPECT_EQ(parse_bytes("16GB", "--x"), 16e9);
    EXPECT_EQ(parse_bytes("1.5KiB", "--x"), 1536);
    EXPECT_EQ(parse_bytes("2kB", "--x"), 2000);
    EXPECT_EQ(parse_bytes("500MB/s", "--x", true), 5e8);
    EXPECT_EQ(parse_bytes("1TB", "--x", true), 1e12);
    for (const char* text :
         {"", "0", "-1", "x", "1X", "1XB", "1G", "1 GB", "nan", "inf", "1e99", "GB", "1GB/s", "1iB", "1GBx"})
        EXPECT_THROW(parse_bytes(text, "--x"), Error) << text;
}

TEST(Durations, ForPeople) {
    EXPECT_EQ(human_duration(0.0123), "12.3 ms");
    EXPECT_EQ(human_duration(1276.5), "21.3 min");
    EXPECT_EQ(human_duration(1e300), "never");
    EXPECT_EQ(human_duration(0.0 / 0.0), "never");
}

TEST(Bytes, ComeBackFromUtf8AsTheyWere) {
    const std::vector<std::string> words = {"plain",
                                            "caf\xc3\xa9",
                                            "caf\xe9",
                                            "\xff",
                                            "\xc3",
                                            "\xed\xa0\x80",
                                            std::string("a\0b", 3),
                                            "\xf4\x8f\xbf\xa9",
                                            "\xf4\x90\x80\x80"};
    for (const std::string& word : words) {
        std::string text = as_utf8(word);
        EXPECT_EQ(bytes_of_utf8(text), word);
        EXPECT_EQ(as_utf8(text) == text, text == word)
            << "a text that has such characters is no longer itself";
    }
    EXPECT_EQ(as_utf8("caf\xc3\xa9"), "caf\xc3\xa9");
    EXPECT_NE(as_utf8("\xe9"), as_utf8("\xe8"));
}

}  // namespace
}  // namespace fermata
