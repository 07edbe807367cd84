// Plan says how often a job saves itself at which level, so that it loses the least: to first order each
// level that is used costs sqrt(2 C r), with C what one of its checkpoints costs and r the rate of the
// failures that no cheaper level bears (source.h). No clock and no I/O.
#pragma once

#include <string>
#include <vector>

namespace fermata::predict {

// The cost of a level. A list of them goes from the cheapest to the one that bears everything.
struct LevelCost {
    std::string name;
    double cost = 0;      // seconds that the job loses by one
    double rate = 0;      // a second: failures that this level bears, and no cheaper one
    bool needed = false;  // it cannot be left out, as the last cannot
};

struct PlannedLevel {
    std::string name;
    double cost = 0;
    double rate = 0;    // with those of the levels before it that were left out
    double best = 0;    // seconds between two
    double period = 0;  // the same as a multiple of the one before
};

struct Plan {
    std::vector<PlannedLevel> levels;
    double loss = 0;  // share of the time
};

Plan best_plan(const std::vector<LevelCost>& levels);

}  // namespace fermata::predict
