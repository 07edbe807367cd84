#include "root/log_sizes.h"

#include <nlohmann/json.hpp>

#include "root/control/json.h"

namespace fermata::root {

using nlohmann::json;

bool LogSizes::heard(const wire::LogSize& said) {
    Size& size = sizes_[said.rank];
    size.held = said.held;
    size.spilled = said.spilled;
    if (said.spilled == 0 || said.spilled < size.noted * 2) return false;
    size.noted = said.spilled;
    return true;
}

json LogSizes::to_json() const {
    uint64_t held = 0, spilled = 0, most = 0;
    int32_t largest = -1;
    json ranks = json::array();
    for (const auto& [rank, size] : sizes_) {
        const uint64_t all = size.held + size.spilled;
        if (all == 0) continue;
        held += size.held;
        spilled += size.spilled;
        if (all > most) {
            most = all;
            largest = rank;
        }
        if (ranks.size() < kMostListed)
            ranks.push_back({{"rank", rank}, {"held", size.held}, {"spilled", size.spilled}});
    }
    return {{"held", held}, {"spilled", spilled}, {"largest", largest}, {"ranks", ranks}};
}

}  // namespace fermata::root
