// Pictures and tables of what ranks took themselves in checkpoints: blocks of neighbours by phases and by
// checkpoints, and the slowest ranks by name.
#pragma once

#include <string>

#include "journal/history.h"

namespace fermata::report {

inline constexpr size_t kMostSlowest = 10;

// Empty when the journal has no times of ranks.
std::string ranks_map(const journal::History& job);
std::string slowest_ranks(const journal::History& job);

}  // namespace fermata::report
