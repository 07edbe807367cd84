#include "predict/advice.h"

#include <fmt/core.h>

#include <cmath>

#include "base/text.h"

namespace fermata::predict {
namespace {

constexpr double kAsGood = 0.001;  // of the work's time: nobody changes an interval for less

}  // namespace

std::string percent(double share) {
    if (!(share < 1e4)) return "without end";
    const double value = share * 100;
    if (value == 0) return "0 %";
    return fmt::format("{:.{}f} %", value, value < 0.1 ? 3 : value < 1 ? 2 : value < 100 ? 1 : 0);
}

std::string advice(const Job& job, double interval) {
    const double best = daly(job.cost, job.mtbf);
    const double least = loss(job, best);
    const std::string to_best = fmt::format("every {} {} (Daly 2006)", human_duration(best), percent(least));
    if (interval <= 0)
        return fmt::format("A checkpoint every {} costs {} (Daly 2006).", human_duration(best),
                           percent(least));
    const double now = loss(job, interval);
    if (now - least < kAsGood)
        return fmt::format("Every {} costs {}: no interval costs noticeably less (Daly 2006: every {}).",
                           human_duration(interval), percent(now), human_duration(best));
    return fmt::format("Every {} costs {}, {}: --interval auto does that.", human_duration(interval),
                       percent(now), to_best);
}

}  // namespace fermata::predict
