#include "report/shades.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"

namespace fermata::report {
namespace {

constexpr double kStep = 90;

// The lowest time of a shade, in words.
template <class LowestOf>
void draw_scale(draw::Svg& svg, double x, double y, double step, LowestOf lowest_of) {
    for (int i = 0; i < kShades; ++i) {
        svg.rect(x + i * step, y, 18, 14, fmt::format("h{}", i));
        svg.text({x + i * step + 22, y + 11}, i == 0 ? "0" : human_duration(lowest_of(i)), "dim");
    }
}

}  // namespace

std::string shade(double seconds) {
    if (!(seconds > 1e-3)) return "h0";
    const double steps = 1 + std::log(seconds / 1e-3) / std::log(5.0);
    return fmt::format("h{}", std::clamp(static_cast<int>(std::min(steps, 100.0)), 0, kShades - 1));
}

void scale_of_shades(draw::Svg& svg, double x, double y) {
    svg.text({4, y + 11}, "seconds, at least:", "dim");
    draw_scale(svg, x, y, kStep, [](int i) { return 1e-3 * std::pow(5, i - 1); });
}

std::string shade_of(double seconds, double longest) {
    if (!(seconds > 0 && longest > 0)) return "h0";
    return fmt::format("h{}", std::clamp(static_cast<int>(kShades * (seconds / longest)), 0, kShades - 1));
}

void even_scale(draw::Svg& svg, double x, double y, double longest) {
    draw_scale(svg, x, y, 84, [longest](int i) { return longest * i / kShades; });
}

}  // namespace fermata::report
