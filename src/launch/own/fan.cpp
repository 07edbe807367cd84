#include "launch/own/fan.h"

#include <algorithm>

namespace fermata::launch::own {

std::vector<uint32_t> Fan::part(size_t begin) const {
    const size_t from = std::min(begin, nodes_.size()), to = std::min(begin + width_, nodes_.size());
    return {nodes_.begin() + static_cast<ptrdiff_t>(from), nodes_.begin() + static_cast<ptrdiff_t>(to)};
}

std::vector<uint32_t> Fan::by(uint32_t node) const {
    const auto at = std::find(nodes_.begin(), nodes_.end(), node);
    if (at == nodes_.end()) return {};
    return part((static_cast<size_t>(at - nodes_.begin()) + 1) * width_);
}

}  // namespace fermata::launch::own
