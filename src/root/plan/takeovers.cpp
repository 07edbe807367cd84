#include "root/plan/takeovers.h"

#include <algorithm>
#include <utility>

namespace fermata::root {

void Takeovers::add(One one) { all_.push_back(std::move(one)); }

std::vector<Takeovers::One> Takeovers::due(int64_t now) {
    std::vector<One> due;
    for (One& one : all_)
        if (now >= one.at && !std::exchange(one.told, true)) due.push_back(one);
    return due;
}

Takeovers::One Takeovers::over(int32_t rank) {
    auto at = std::find_if(all_.begin(), all_.end(), [rank](auto& one) { return one.rank == rank; });
    if (at == all_.end()) return {};
    One one = std::move(*at);
    all_.erase(at);
    return one;
}

tree::Ranks Takeovers::to(int node) const {
    tree::Ranks ranks;
    for (const One& one : all_)
        if (one.to == node) ranks.add(tree::Ranks(one.rank));
    return ranks;
}

}  // namespace fermata::root
