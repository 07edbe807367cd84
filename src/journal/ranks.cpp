#include "journal/ranks.h"

#include <algorithm>
#include <optional>

#include "journal/event.h"

namespace fermata::journal {
namespace {

constexpr size_t kMostBlocks = 64, kMostPhases = 32;
constexpr double kMostSeconds = 1e9, kMostRanks = 1e9;

// The numbers of a list that has as many as it should.
std::optional<std::vector<double>> numbers_in(const nlohmann::json& fields, const char* name, size_t wanted,
                                              double most) {
    auto found = fields.find(name);
    if (found == fields.end() || !found->is_array() || found->size() != wanted) return {};
    std::vector<double> all;
    for (const nlohmann::json& one : *found) {
        if (!one.is_number()) return {};
        const double value = one.get<double>();
        if (!(value >= 0 && value <= most)) return {};
        all.push_back(value);
    }
    return all;
}

std::optional<RanksTook::Phase> phase_of(const std::string& name, const nlohmann::json& fields, size_t blocks,
                                         int ranks) {
    if (!fields.is_object()) return {};
    auto seconds = numbers_in(fields, "seconds", blocks, kMostSeconds);
    auto slowest = numbers_in(fields, "slowest", blocks, ranks - 1);
    if (!seconds || !slowest) return {};
    RanksTook::Phase phase{name, std::move(*seconds), {}, 0, ""};
    for (double rank : *slowest) phase.slowest.push_back(static_cast<int>(rank));
    if (auto mean = fields.find("mean"); mean != fields.end() && mean->is_number())
        phase.mean = std::clamp(mean->get<double>(), 0.0, phase.seconds[phase.worst()]);
    if (auto host = fields.find("host"); host != fields.end() && host->is_string())
        phase.host = host->get<std::string>();
    return phase;
}

}  // namespace

size_t RanksTook::Phase::worst() const {
    return static_cast<size_t>(std::max_element(seconds.begin(), seconds.end()) - seconds.begin());
}

const RanksTook::Phase* RanksTook::longest_wait() const {
    auto longest = std::max_element(phases.begin(), phases.end(), [](const Phase& one, const Phase& other) {
        return one.excess() < other.excess();
    });
    return longest == phases.end() ? nullptr : &*longest;
}

int RanksTook::first_of(size_t block) const {
    const auto all = static_cast<size_t>(ranks);
    return static_cast<int>((block * all + blocks - 1) / blocks);
}

RanksTook ranks_took(const Event& event) {
    const double ranks = number_in(event, "ranks"), blocks = number_in(event, "blocks");
    auto phases = event.fields.find("phases");
    if (!(ranks >= 1 && ranks <= kMostRanks && blocks >= 1 && blocks <= kMostBlocks && blocks <= ranks) ||
        phases == event.fields.end() || !phases->is_object())
        return {};
    RanksTook all;
    all.ranks = static_cast<int>(ranks);
    all.blocks = static_cast<size_t>(blocks);
    for (auto& [name, fields] : phases->items())
        if (all.phases.size() < kMostPhases)
            if (auto phase = phase_of(name, fields, all.blocks, all.ranks))
                all.phases.push_back(std::move(*phase));
    return all;
}

}  // namespace fermata::journal
