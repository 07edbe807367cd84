#include "level/levels.h"

#include <algorithm>


namespace fermata::level {

uint64_t Levels::rate(double of_node, double period) const {
    constexpr uint64_t kLeast = 64u << 20;  // slower than this no copy need be
    if (copy_limit > 0) return copy_limit;
    return period <= 0 ? 0 : std::max(static_cast<uint64_t>(of_node / (period / 2)), kLeast);
}

}  // namespace fermata::level
