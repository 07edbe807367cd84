#include "draw/svg.h"

#include <fmt/core.h>

#include <cmath>

#include "base/text.h"

namespace fermata::draw {
namespace {

// Two digits are a hundredth of a pixel.
std::string number(double value) {
    if (!std::isfinite(value)) return "0";
    std::string text = fmt::format("{:.2f}", value);
    while (text.back() == '0') text.pop_back();
    if (text.back() == '.') text.pop_back();
    return text == "-0" ? "0" : text;
}

std::string closed(const std::string& name, const std::string& tip) {
    if (tip.empty()) return "/>\n";
    return fmt::format("><title>{}</title></{}>\n", escaped(tip, 400), name);
}

}  // namespace

const char* const kStyle = R"(
svg { font: 12px system-ui, "DejaVu Sans", sans-serif; }
svg text { fill: #222; } svg text.dim { fill: #666; font-size: 11px; } svg text.head { font-weight: 600; }
svg text.bad { fill: #b00020; }
.axis { stroke: #999; fill: none; } .grid { stroke: #e6e6e6; fill: none; }
.run { fill: #7fb77e; } .start { fill: #c9c9c9; } .restart { fill: #f2b134; } .stand { fill: #3f6fb5; }
.write { fill: #7da7d9; } .flush { fill: #9b7fc1; } .lost { fill: #d62839; } .fail { fill: #7a0014; stroke: #7a0014; }
.bar { fill: #7da7d9; } .floor { stroke: #d62839; stroke-dasharray: 5 3; fill: none; }
.one { stroke: #3f6fb5; fill: none; stroke-width: 2; } .two { stroke: #c2571a; fill: none; stroke-width: 2; }
.masked { fill: #0b6e6e; stroke: #0b6e6e; }
.mark { fill: #c2571a; } .mark2 { fill: #3f6fb5; }
.h0 { fill: #f3f5f9; } .h1 { fill: #dbe5f3; } .h2 { fill: #b4cbe8; } .h3 { fill: #86a9d8; } .h4 { fill: #5682c0; }
.h5 { fill: #33599b; } .h6 { fill: #1c3670; }
)";

std::string escaped(const std::string& text) {
    std::string safe;
    for (char c : visible(text)) switch (c) {
            case '&':
                safe += "&amp;";
                break;
            case '<':
                safe += "&lt;";
                break;
            case '>':
                safe += "&gt;";
                break;
            case '"':
                safe += "&quot;";
                break;
            case '\'':
                safe += "&#39;";
                break;
            default:
                safe += c;
        }
    return safe;
}

std::string escaped(const std::string& text, size_t most) {
    const std::string shown = visible(text);
    size_t at = 0, characters = 0;
    for (; at < shown.size(); ++at)
        if ((static_cast<unsigned char>(shown[at]) & 0xc0) != 0x80 && ++characters > most)
            return escaped(shown.substr(0, at)) + "…";
    return escaped(shown);
}

Svg::Svg(double width, double height, const std::string& label)
    : width_(width), height_(height), label_(label) {}

void Svg::rect(double x, double y, double width, double height, std::string_view kind,
               const std::string& tip) {
    shapes_ += fmt::format("<rect class=\"{}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"{}", kind,
                           number(x), number(y), number(width), number(height), closed("rect", tip));
}

void Svg::cell(Point at, Point size, std::string_view kind, const std::string& tip, const Value& value) {
    shapes_ += fmt::format(
        "<rect data-k=\"{}\" data-v=\"{}\" class=\"{}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"{}",
        escaped(value.name), value.value, kind, number(at.x), number(at.y), number(size.x), number(size.y),
        closed("rect", tip));
}

void Svg::line(Point from, Point to, std::string_view kind) {
    shapes_ += fmt::format("<line class=\"{}\" x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\"/>\n", kind,
                           number(from.x), number(from.y), number(to.x), number(to.y));
}

void Svg::curve(const std::vector<Point>& points, std::string_view kind) {
    shapes_ += fmt::format("<polyline class=\"{}\" points=\"", kind);
    for (const Point& point : points) shapes_ += number(point.x) + "," + number(point.y) + " ";
    shapes_ += "\"/>\n";
}

void Svg::dot(Point at, std::string_view kind, const std::string& tip) {
    shapes_ += fmt::format("<circle class=\"{}\" cx=\"{}\" cy=\"{}\" r=\"4\"{}", kind, number(at.x),
                           number(at.y), closed("circle", tip));
}

void Svg::text(Point at, const std::string& words, std::string_view kind, Anchor anchor) {
    const char* const anchors[] = {"start", "middle", "end"};
    shapes_ +=
        fmt::format("<text x=\"{}\" y=\"{}\" class=\"{}\" text-anchor=\"{}\">{}</text>\n", number(at.x),
                    number(at.y), kind, anchors[static_cast<int>(anchor)], escaped(words, 200));
}

std::string Svg::element(const std::string& attributes) const {
    return fmt::format(
        "<svg{} width=\"{}\" height=\"{}\" viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">\n",
        attributes, number(width_), number(height_), number(width_), number(height_), escaped(label_, 400));
}

std::string Svg::inner() const { return element("") + shapes_ + "</svg>\n"; }

std::string Svg::file() const {
    return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n" + element(" xmlns=\"http://www.w3.org/2000/svg\"") +
           "<style>" + kStyle +
           "</style>\n<rect x=\"0\" y=\"0\" width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n" + shapes_ +
           "</svg>\n";
}

}  // namespace fermata::draw
