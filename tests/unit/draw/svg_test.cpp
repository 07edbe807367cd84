// Pictures: what others have written is never markup, numbers that cannot be are drawn nowhere.
#include "draw/svg.h"

#include <gtest/gtest.h>

#include <cmath>

#include "draw/chart.h"

namespace fermata::draw {
namespace {

constexpr const char* kEvil = "</title><script>alert(1)</script>\"' onload=x & \x1b[31m \xff \n";

TEST(Svg, NothingThatOthersHaveWrittenIsMarkup) {
    Svg svg(100, 50, kEvil);
    svg.rect(0, 0, 10, 10, "run", kEvil);
    svg.dot({1, 2}, "mark", kEvil);
    svg.text({5, 5}, kEvil);
    for (const std::string& text : {svg.inner(), svg.file()}) {
        EXPECT_EQ(text.find("<script"), std::string::npos);
        EXPECT_EQ(text.find("\x1b"), std::string::npos);
        EXPECT_EQ(text.find("\xff"), std::string::npos);
        EXPECT_EQ(text.find("\" onload"), std::string::npos);
        EXPECT_NE(text.find("&lt;script&gt;"), std::string::npos);
        EXPECT_NE(text.find("\\x1b[31m"), std::string::npos);
    }
}

TEST(Svg, TextIsCutAtACharacter) {
    EXPECT_EQ(escaped("äöü<", 4), "äöü&lt;");
    EXPECT_EQ(escaped("äöü<x", 4), "äöü&lt;…");
    EXPECT_EQ(escaped("<<<", 1), "&lt;…");
    EXPECT_EQ(escaped("", 0), "");
}

TEST(Chart, NumbersThatCannotBeStayInside) {
    for (bool logarithmic : {false, true}) {
        Axis axis{"x", 1, 100, logarithmic, [](double) { return "n"; }, {}};
        for (double value : {0.0, -1.0, 1e300, -1e300, double(NAN), double(INFINITY)}) {
            EXPECT_GE(axis.place(value), 0);
            EXPECT_LE(axis.place(value), 1);
        }
        EXPECT_EQ(axis.place(1), 0);
        EXPECT_EQ(axis.place(100), 1);
        EXPECT_NEAR(axis.place(10), logarithmic ? 0.5 : 1.0 / 11, 1e-12);
        axis.high = axis.low;
        EXPECT_EQ(axis.place(1), 0);
    }
    Svg svg(100, 100, "a");
    Chart chart{"t",
                {"x", 0, 0, false, [](double) { return ""; }, {}},
                {"y", 0, 0, false, [](double) { return ""; }, {}},
                {},
                {},
                {},
                {}};
    chart.curves.push_back({{{NAN, NAN}, {1, INFINITY}}, "one"});
    chart.draw(svg, 0, 0, 100, 100);
    EXPECT_EQ(svg.inner().find("nan"), std::string::npos);
    EXPECT_EQ(svg.inner().find("inf"), std::string::npos);
}

}  // namespace
}  // namespace fermata::draw
