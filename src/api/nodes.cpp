#include "api/nodes.h"

#include <algorithm>
#include <map>

namespace fermata::api {

// The k-th rank of a node takes the k-th of the others, counted from the next node on: equal nodes keep one
// copy for each rank, and a large node's copies are dealt out evenly.
Nodes::Nodes(const std::vector<std::string>& place) {
    const int size = static_cast<int>(place.size());
    std::map<std::string, int> numbers;
    std::vector<std::vector<int>> ranks;
    for (int r = 0; r < size; ++r) {
        auto [at, fresh] =
            numbers.try_emplace(place[static_cast<size_t>(r)], static_cast<int>(numbers.size()));
        if (fresh) {
            leaders_.push_back(r);
            ranks.emplace_back();
        }
        node_.push_back(at->second);
        ranks[static_cast<size_t>(at->second)].push_back(r);
    }
    buddy_.assign(place.size(), -1);
    round_.assign(place.size(), -1);
    senders_.resize(place.size());
    if (count() < 2) return;
    for (size_t n = 0; n < ranks.size(); ++n) {
        std::vector<int> others;
        for (size_t k = 1; k < ranks.size(); ++k) {
            const auto& next = ranks[(n + k) % ranks.size()];
            others.insert(others.end(), next.begin(), next.end());
        }
        for (size_t k = 0; k < ranks[n].size(); ++k) {
            const int rank = ranks[n][k], to = others[k % others.size()];
            auto& from = senders_[static_cast<size_t>(to)];
            buddy_[static_cast<size_t>(rank)] = to;
            round_[static_cast<size_t>(rank)] = static_cast<int>(from.size());
            from.push_back(rank);
            rounds_ = std::max(rounds_, static_cast<int>(from.size()));
        }
    }
}

int Nodes::sends_to(int rank, int round) const {
    return round_[static_cast<size_t>(rank)] == round ? buddy(rank) : -1;
}

int Nodes::receives_from(int rank, int round) const {
    const auto& from = senders_[static_cast<size_t>(rank)];
    return static_cast<size_t>(round) < from.size() ? from[static_cast<size_t>(round)] : -1;
}

}  // namespace fermata::api
