#include "root/plan/doubts.h"

#include <utility>

namespace fermata::root {
namespace {
constexpr int64_t kMomentMs = 100;
}

std::optional<uint64_t> Doubts::begin(std::set<int> nodes, int64_t now) {
    const bool goes_on = !missing_.empty() && nodes == nodes_;
    if ((waiting_.empty() && settling_.empty()) || goes_on || now < not_before_ || nodes.empty()) return {};
    for (auto& [rank, number] : waiting_) settling_[rank] = number;
    waiting_.clear();
    nodes_ = missing_ = std::move(nodes);
    return ++round_;
}

std::map<int32_t, uint64_t> Doubts::answered(int node, uint64_t round, bool all, int64_t now) {
    if (round != round_ || missing_.empty()) return {};
    if (!all) {
        missing_.clear();
        not_before_ = now + kMomentMs;
        return {};
    }
    missing_.erase(node);
    if (!missing_.empty()) return {};
    return std::exchange(settling_, {});
}

}  // namespace fermata::root
