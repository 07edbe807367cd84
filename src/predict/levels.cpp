#include "predict/levels.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "base/invariant.h"

namespace fermata::predict {
namespace {

// `left_out`: a bit for each level.
Plan plan_without(const std::vector<LevelCost>& levels, size_t left_out) {
    Plan plan;
    double rate = 0;
    for (size_t i = 0; i < levels.size(); ++i) {
        rate += levels[i].rate;
        if (left_out >> i & 1) continue;
        const LevelCost& level = levels[i];
        plan.loss += std::sqrt(2 * rate * level.cost);
        const double best = rate > 0 ? std::sqrt(2 * level.cost / rate) : INFINITY;
        const double before = plan.levels.empty() ? 0 : plan.levels.back().period;
        const double period = before > 0 ? before * std::max(1.0, std::round(best / before)) : best;
        plan.levels.push_back({level.name, level.cost, rate, best, period});
        rate = 0;
    }
    return plan;
}

}  // namespace

Plan best_plan(const std::vector<LevelCost>& levels) {
    always(!levels.empty() && levels.size() < 32, "a plan without a level");
    for (const LevelCost& level : levels)
        always(level.cost >= 0 && level.rate >= 0, "a level that costs less than nothing");
    Plan best = plan_without(levels, 0);
    for (size_t left_out = 1; left_out < size_t{1} << levels.size(); ++left_out) {
        bool possible = (left_out >> (levels.size() - 1) & 1) == 0;
        for (size_t i = 0; i < levels.size(); ++i)
            possible = possible && !(levels[i].needed && (left_out >> i & 1));
        if (!possible) continue;
        Plan plan = plan_without(levels, left_out);
        always(!plan.levels.empty(), "a plan without a level");
        if (plan.loss < best.loss) best = std::move(plan);
    }
    return best;
}

}  // namespace fermata::predict
