#include "keeping/account/auto_levels.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "journal/forecast.h"
#include "predict/interval.h"

namespace fermata::keeping {
namespace {

constexpr double kFirst = 60;       // s, and a hundredth of the time between failures: the first one measures
constexpr double kShortest = 1e-3;  // s: faster than this nothing is measured
// Between two checkpoints the job shall get on, whatever the formula says.
constexpr double kLeastWork = 2;

}  // namespace

AutoLevels::AutoLevels(Settings& settings) : settings_(settings) {
    if (!on()) return;
    settings_.levels.memory = std::min(kFirst, settings_.mtbf / 100);
    settings_.levels.buddy = 0;  // of each generation, at full speed, until one is measured
    settings_.levels.files = 0;
    settings_.interval = *settings_.levels.memory;
}

void AutoLevels::Copying::measured(uint64_t bytes, double seconds) {
    // Later ones have a limit, and say nothing of what is possible.
    if (bandwidth == 0 && bytes > 0) bandwidth = static_cast<double>(bytes) / std::max(seconds, kShortest);
}

double AutoLevels::Copying::cost(uint64_t bytes) const {
    return journal::Measured::kSlowDown * static_cast<double>(bytes) / bandwidth;
}

void AutoLevels::no_buddies(const std::string& why) {
    if (!on() || why.empty()) return;
    no_buddies_ = why;
    settings_.levels.buddy.reset();
    plan();
}

void AutoLevels::memory(double cost, uint64_t bytes) {
    if (!on()) return;
    memory_cost_ = std::max(cost, kShortest);
    bytes_ = bytes;
    plan();
}

// As --interval auto does, until one has been in memory.
void AutoLevels::no_memory(double cost) {
    if (on() && memory_cost_ == 0)
        settings_.interval = std::max(predict::daly(cost, settings_.mtbf), kLeastWork * cost);
}

void AutoLevels::buddies(uint64_t bytes, double seconds) {
    if (!on()) return;
    buddies_.measured(bytes, seconds);
    plan();
}

void AutoLevels::files(uint64_t bytes, double seconds) {
    if (!on()) return;
    files_.measured(bytes, seconds);
    plan();
}

void AutoLevels::plan() {
    if (memory_cost_ == 0 || files_.bandwidth == 0) return;
    if (no_buddies_.empty() && buddies_.bandwidth == 0) return;
    const double failures = 1 / settings_.mtbf;
    std::vector<predict::LevelCost> costs = {{"memory", memory_cost_, failures * kOfRanks, true}};
    if (no_buddies_.empty()) costs.push_back({"buddy", buddies_.cost(bytes_), failures * kOfNode, false});
    const double others = no_buddies_.empty() ? kOfMore : kOfNode + kOfMore;
    costs.push_back({"files", files_.cost(bytes_), failures * others, true});
    plan_ = predict::best_plan(costs);
    level::Levels& levels = settings_.levels;
    levels.buddy.reset();
    double least = kLeastWork * memory_cost_;
    for (predict::PlannedLevel& one : plan_.levels) {
        one.period = least = std::max(one.period, least);
        (one.name == "memory"  ? levels.memory
         : one.name == "buddy" ? levels.buddy
                               : levels.files) = one.period;
    }
    settings_.interval = *levels.memory;
}

nlohmann::json AutoLevels::status() const {
    nlohmann::json all = {{"mtbf", settings_.mtbf},
                          {"shares", {{"ranks", kOfRanks}, {"node", kOfNode}, {"more", kOfMore}}}};
    if (!no_buddies_.empty()) all["no_buddies"] = no_buddies_;
    for (const predict::PlannedLevel& one : plan_.levels)
        all["levels"].push_back({{"name", one.name},
                                 {"cost", one.cost},
                                 {"rate", one.rate},
                                 {"best", one.best},
                                 {"period", one.period}});
    if (!plan_.levels.empty()) all["loss"] = plan_.loss;
    return all;
}

}  // namespace fermata::keeping
