#include "root/checkpoint/times.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace fermata::root {
namespace {

// A tenth of a millisecond is enough, and short.
double seconds(double us) { return std::round(us / 100) / 1e4; }

// Every rank is counted in its block, and each block's slowest are of it.
bool are_of(const std::vector<wire::BlockTimes>& blocks, uint32_t ranks) {
    uint64_t counted = 0;
    for (const wire::BlockTimes& one : blocks) {
        counted += one.ranks;
        for (int32_t rank : one.slowest) {
            const auto number = static_cast<uint32_t>(rank);
            if (number >= ranks || wire::block_of(number, ranks) != one.block) return false;
        }
    }
    return blocks.size() == wire::blocks_of(ranks) && counted == ranks;
}

}  // namespace

nlohmann::json times_for_journal(const tree::BlockTimes& times, uint32_t ranks,
                                 const std::function<std::string(Rank)>& host_of) {
    const auto& blocks = times.blocks();
    if (blocks.empty() || !are_of(blocks, ranks)) return {};
    nlohmann::json phases = nlohmann::json::object();
    for (size_t i = 0; i < wire::kTimedPhaseCount; ++i) {
        auto by_time = [i](const wire::BlockTimes& one, const wire::BlockTimes& other) {
            return one.slowest_us[i] < other.slowest_us[i];
        };
        const wire::BlockTimes& worst = *std::max_element(blocks.begin(), blocks.end(), by_time);
        if (seconds(static_cast<double>(worst.slowest_us[i])) == 0) continue;  // no rank had a part in it
        double sum = 0;
        nlohmann::json longest = nlohmann::json::array(), who = nlohmann::json::array();
        for (const wire::BlockTimes& one : blocks) {
            sum += static_cast<double>(one.sums_us[i]);
            longest.push_back(seconds(static_cast<double>(one.slowest_us[i])));
            who.push_back(one.slowest[i]);
        }
        phases[wire::kTimedPhases[i]] = {{"seconds", std::move(longest)},
                                         {"slowest", std::move(who)},
                                         {"mean", seconds(sum / ranks)},
                                         {"host", host_of(Rank(static_cast<uint32_t>(worst.slowest[i])))}};
    }
    return {{"ranks", ranks}, {"blocks", blocks.size()}, {"phases", std::move(phases)}};
}

}  // namespace fermata::root
