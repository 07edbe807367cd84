#include "draw/chart.h"

#include <algorithm>
#include <cmath>

namespace fermata::draw {

double Axis::place(double value) const {
    double share;
    if (logarithmic)
        share = value > 0 && low > 0 && high > low ? std::log(value / low) / std::log(high / low) : 0;
    else
        share = high > low ? (value - low) / (high - low) : 0;
    return std::isfinite(share) ? std::clamp(share, 0.0, 1.0) : 0;
}

std::vector<double> Axis::chosen_marks() const {
    if (!marks.empty()) return marks;
    std::vector<double> all;
    for (int i = 0; i <= 4; ++i)
        all.push_back(logarithmic ? low * std::pow(high / low, i / 4.0) : low + (high - low) * i / 4.0);
    return all;
}

void Chart::draw(Svg& svg, double left, double top, double width, double height) const {
    const double x0 = left + 78, x1 = left + width - 14, y0 = top + height - 42, y1 = top + 34;
    auto at = [&](Point value) {
        return Point{x0 + (x1 - x0) * x.place(value.x), y0 + (y1 - y0) * y.place(value.y)};
    };
    svg.text({left + 4, top + 16}, title, "head");
    for (double mark : y.chosen_marks()) {
        const double height_of = y0 + (y1 - y0) * y.place(mark);
        svg.line({x0, height_of}, {x1, height_of}, "grid");
        svg.text({x0 - 6, height_of + 4}, y.text(mark), "dim", Svg::Anchor::end);
    }
    const std::vector<double> along = x.chosen_marks();
    for (size_t i = 0; i < along.size(); ++i) {
        const double place = x0 + (x1 - x0) * x.place(along[i]);
        svg.line({place, y0}, {place, y0 + 4}, "axis");
        svg.text({place, y0 + 17}, x.text(along[i]), "dim",
                 i + 1 == along.size() ? Svg::Anchor::end : Svg::Anchor::middle);
    }
    svg.line({x0, y0}, {x1, y0}, "axis");
    svg.text({(x0 + x1) / 2, y0 + 34}, x.label, "dim", Svg::Anchor::middle);
    svg.text({x0, y1 - 8}, y.label, "dim", Svg::Anchor::start);
    if (!bars.empty()) {
        const double room = (x1 - x0) / static_cast<double>(bars.size());
        for (size_t i = 0; i < bars.size(); ++i) {
            const double high = at({0, bars[i].y}).y;
            svg.rect(x0 + (static_cast<double>(i) + 0.1) * room, high, std::max(0.5, 0.8 * room), y0 - high,
                     "bar");
        }
    }
    for (const Series& series : curves) {
        std::vector<Point> points;
        for (const Point& value : series.points) points.push_back(at(value));
        svg.curve(points, series.kind);
    }
    for (const Mark& floor : floors) {
        const double high = at({0, floor.at.y}).y;
        svg.line({x0, high}, {x1, high}, "floor");
        svg.text({x1, high - 5}, floor.text, "bad", Svg::Anchor::end);
    }
    for (const Mark& mark : marks) {
        const Point place = at(mark.at);
        svg.dot(place, mark.kind, mark.text);
        const bool right = place.x > (x0 + x1) / 2;
        svg.text({place.x + (right ? -8 : 8), place.y + (mark.below ? 20 : -7)}, mark.text, "",
                 right ? Svg::Anchor::end : Svg::Anchor::start);
    }
}

}  // namespace fermata::draw
