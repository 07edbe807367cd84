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

}  // namespace
}  // namespace fermata
