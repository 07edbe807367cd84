// The timeline shows all lives of a job over one axis of time: when its ranks started, ran, stood and wrote,
// what was copied meanwhile, what failed, and which work was lost.
#pragma once

#include <string>

#include "journal/history.h"

namespace fermata::report {

// Lives that are drawn, and shapes of the whole picture; what is more is drawn coarser or, of lives between
// the first and the newest, not at all.
inline constexpr size_t kMostLives = 40, kMostShapes = 6000;

std::string timeline(const journal::History& job);

}  // namespace fermata::report
