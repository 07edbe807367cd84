// Pictures and tables of a job's checkpoints: how long each phase took, how fast they were written, which
// node was the last in a phase, and which ranks waited where.
#pragma once

#include <string>

#include "journal/history.h"

namespace fermata::report {

inline constexpr size_t kMostColumns = 60;  // checkpoints in a picture: the newest
inline constexpr size_t kMostNodes = 20, kMostWaits = 20;

// Phases by checkpoints; the darker, the longer.
std::string heat_map(const journal::History& job);
// Phases by the nodes that came last in them.
std::string nodes_map(const journal::History& job);
std::string bandwidths(const journal::History& job, double floor);
std::string waits(const journal::History& job);

}  // namespace fermata::report
