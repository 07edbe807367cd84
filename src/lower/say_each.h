// This header says lines of one rank's.
#pragma once

#include <fmt/core.h>

#include <string>
#include <vector>

#include "base/log.h"
#include "base/rank.h"

namespace fermata::lower {

inline void say_each(Rank rank, const std::vector<std::string>& lines) {
    for (const std::string& line : lines) say(fmt::format("rank {}: {}", rank.number(), line));
}

}  // namespace fermata::lower
