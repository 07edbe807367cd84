#include "level/levels.h"

#include <algorithm>

#include "base/invariant.h"

namespace fermata::level {

uint64_t Levels::rate(double of_node, double period) const {
    always(of_node >= 0 && period >= 0, "a copy of less than nothing, or in less than no time");
    constexpr uint64_t kLeast = 64u << 20;  // slower than this no copy need be
    if (copy_limit > 0) return copy_limit;
    return period <= 0 ? 0 : std::max(static_cast<uint64_t>(of_node / (period / 2)), kLeast);
}

}  // namespace fermata::level
