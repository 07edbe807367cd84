#include "lower/together.h"

#include <fmt/core.h>

#include "lower/services.h"

namespace fermata::lower {

Together::Together(uint32_t epoch, Rank rank) : rank_(rank) {
    saved_.epoch = epoch;
    saved_.rank = static_cast<int32_t>(rank.number());
}

void Together::meet() {
    try {
        meeting_.emplace(the_bridge()->private_world, true);
    } catch (const std::exception& error) {
        note(error.what());
    }
}

void Together::note(const std::string& error) {
    if (saved_.error.empty()) saved_.error = fmt::format("rank {}: {}", rank_.number(), error);
}

}  // namespace fermata::lower
