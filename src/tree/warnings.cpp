#include "tree/warnings.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdio>

namespace fermata::tree {
namespace {

constexpr size_t kMost = 200;

std::string list_of(std::vector<int> ranks) {
    std::sort(ranks.begin(), ranks.end());
    ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
    std::string list;
    for (size_t i = 0; i < ranks.size();) {
        size_t last = i;
        while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
        list += fmt::format("{}{}", list.empty() ? "" : ", ", ranks[i]);
        if (last > i) list += fmt::format("-{}", ranks[last]);
        i = last + 1;
    }
    return fmt::format("{} {}", ranks.size() > 1 ? "ranks" : "rank", list);
}

}  // namespace

void Warnings::add(const std::string& text) {
    int rank = -1, length = 0;
    if (std::sscanf(text.c_str(), "rank %d: %n", &rank, &length) != 1 || length == 0) rank = -1, length = 0;
    std::string what = text.substr(static_cast<size_t>(length));
    auto [at, fresh] = ranks_.try_emplace(what);
    if (fresh) order_.push_back(what);
    if (rank >= 0) at->second.push_back(rank);
}

std::vector<std::string> Warnings::lines() const {
    std::vector<std::string> lines;
    for (const std::string& what : order_) {
        if (lines.size() == kMost) {
            lines.push_back(fmt::format("{} more warnings are in the job's output", order_.size() - kMost));
            break;
        }
        const std::vector<int>& ranks = ranks_.at(what);
        lines.push_back(ranks.empty() ? what : list_of(ranks) + ": " + what);
    }
    return lines;
}

}  // namespace fermata::tree
