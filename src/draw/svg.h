// Svg is a picture as text: shapes that are appended, and what stands around them. No file is read for it, no
// script is in it, and text of others is escaped wherever it goes in.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fermata::draw {

// Text for HTML, XML and values of attributes in quotes: nothing in it is markup, control characters and what
// is no UTF-8 as \x1b.
std::string escaped(const std::string& text);
// The same, cut to so many characters, with "…" for what is missing.
std::string escaped(const std::string& text, size_t most);

struct Point {
    double x = 0, y = 0;
};

// The names of classes are those of kStyle.
class Svg {
  public:
    // `label`: what it shows, for those who do not see it.
    Svg(double width, double height, const std::string& label);

    // `tip`: shown under a pointer; "" = none.
    void rect(double x, double y, double width, double height, std::string_view kind,
              const std::string& tip = "");
    // One of a table of values: a number that names itself, for those who read the page by a program.
    struct Value {
        std::string name;
        double value = 0;
    };
    void cell(Point at, Point size, std::string_view kind, const std::string& tip, const Value& value);
    void line(Point from, Point to, std::string_view kind);
    void curve(const std::vector<Point>& points, std::string_view kind);
    void dot(Point at, std::string_view kind, const std::string& tip = "");
    enum class Anchor { start, middle, end };
    void text(Point at, const std::string& words, std::string_view kind = "", Anchor anchor = Anchor::start);

    double width() const { return width_; }
    double height() const { return height_; }
    // Inside of a page that has kStyle.
    std::string inner() const;
    // As a file of its own.
    std::string file() const;

  private:
    std::string element(const std::string& attributes) const;

    double width_, height_;
    std::string label_, shapes_;
};

// Colours and fonts of the pictures, as CSS.
extern const char* const kStyle;

}  // namespace fermata::draw
