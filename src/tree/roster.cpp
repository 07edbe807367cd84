#include "tree/roster.h"

#include <fmt/format.h>

namespace fermata::tree {

std::string Roster::join(int node, const wire::Hello& hello) {
    int32_t size = size_ ? size_ : hello.size;
    if (hello.size != size || size < 1 || size > kMostRanks || hello.rank < 0 || hello.rank >= size ||
        ranks_.count(hello.rank))
        return fmt::format(
            "rank {} of {} on {} does not fit a job of {} ranks: does the program match this mpiexec?",
            hello.rank, hello.size, hello.host,
            size_ ? std::to_string(size_) : fmt::format("1 to {}", kMostRanks));
    size_ = size;
    ranks_[hello.rank] = {node, hello.pid};
    return {};
}

bool Roster::leave(int node, int32_t rank) {
    auto found = ranks_.find(rank);
    if (found == ranks_.end() || found->second.node != node) return false;
    ranks_.erase(found);
    return true;
}

size_t Roster::lose(int node) {
    return std::erase_if(ranks_, [&](const auto& one) { return one.second.node == node; });
}

std::string Roster::missing(size_t most) const {
    std::string list;
    int32_t next = 0;  // the first one not looked at
    auto gap = [&](int32_t end) {
        if (next < end)
            list += fmt::format("{}{}", list.empty() ? "" : ", ",
                                next + 1 < end ? fmt::format("{}-{}", next, end - 1) : std::to_string(next));
    };
    for (auto& [rank, where] : ranks_) {
        if (list.size() > most) return list + ", …";
        gap(rank);
        next = rank + 1;
    }
    gap(size_);
    return list;
}

}  // namespace fermata::tree
