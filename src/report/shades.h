// Shades of the cells of a picture: the darker, the longer.
#pragma once

#include <string>
#include <vector>

#include "draw/svg.h"

namespace fermata::report {

inline constexpr int kShades = 7;
inline constexpr double kCell = 22;  // high

// "h0" to "h6": below a millisecond, then one more for each factor of about five.
std::string shade(double seconds);
void scale_of_shades(draw::Svg& svg, double x, double y);
// In even steps up to the longest one.
std::string shade_of(double seconds, double longest);
void even_scale(draw::Svg& svg, double x, double y, double longest);

}  // namespace fermata::report
