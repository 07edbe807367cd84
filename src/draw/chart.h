// A Chart is a diagram of curves, bars and lines over an axis that is linear or logarithmic.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "draw/svg.h"

namespace fermata::draw {

// Writes the value of a mark of an axis.
using Text = std::function<std::string(double)>;

struct Axis {
    std::string label;
    double low = 0, high = 1;
    bool logarithmic = false;
    Text text;
    // Values to be marked; empty: five of equal distance.
    std::vector<double> marks;

    // 0 at the low end, 1 at the high one; what is beyond stays at the ends.
    double place(double value) const;
    std::vector<double> chosen_marks() const;
};

struct Series {
    std::vector<Point> points;  // in values of the axes
    const char* kind = "one";
};

struct Mark {
    Point at;
    std::string text;
    const char* kind = "mark";
    bool below = false;  // the text
};

struct Chart {
    std::string title;
    Axis x, y;
    std::vector<Series> curves;
    std::vector<Point> bars;  // from the low end of y
    std::vector<Mark> marks;
    std::vector<Mark> floors;  // horizontal lines at at.y, with a text

    // Into `svg`, in this rectangle.
    void draw(Svg& svg, double left, double top, double width, double height) const;
};

}  // namespace fermata::draw
