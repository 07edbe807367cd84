#include "level/buddies.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/invariant.h"

namespace fermata::level {

// The nodes stand in a ring, domain behind domain, and the buddy of a node is so many places further as the
// largest domain has nodes: so it is never of the same domain. Where that domain has more than half of all
// nodes they share the others as buddies.
Buddies::Buddies(std::vector<std::string> nodes, const Domains& domains, bool anywhere) {
    std::sort(nodes.begin(), nodes.end());
    nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
    if (nodes.size() < 2) {
        why_not_ = "the job is on one node, and a buddy is another one";
        return;
    }
    std::map<std::string, std::vector<std::string>> of_domain;
    for (const std::string& node : nodes) of_domain[domains.of(node)].push_back(node);
    if (of_domain.size() == 1 && !anywhere) {
        why_not_ = fmt::format(
            "all nodes ({}) are in the failure domain {}; `buddy anywhere` takes them all the same",
            fmt::join(nodes, ", "), of_domain.begin()->first);
        return;
    }
    size_t largest = 0;
    const std::vector<std::string>* big = nullptr;
    std::vector<std::string> ring;
    for (auto& [domain, its] : of_domain) {
        ring.insert(ring.end(), its.begin(), its.end());
        if (its.size() > largest) big = &its, largest = its.size();
    }
    const size_t count = ring.size();
    if (of_domain.size() == 1) {
        warning_ = fmt::format("buddies are in the same failure domain, {}: its loss takes both copies",
                               of_domain.begin()->first);
        largest = 1;
    }
    if (2 * largest <= count) {
        for (size_t i = 0; i < count; ++i) buddy_[ring[i]] = ring[(i + largest) % count];
        check();
        return;
    }
    std::vector<std::string> others;
    for (const std::string& node : ring)
        if (std::find(big->begin(), big->end(), node) == big->end()) others.push_back(node);
    for (size_t i = 0; i < big->size(); ++i) buddy_[(*big)[i]] = others[i % others.size()];
    always(!others.empty(), "one domain has all nodes, and shares them with others");
    for (size_t i = 0; i < others.size(); ++i) buddy_[others[i]] = (*big)[i % big->size()];
    always(buddy_.size() == count, "a node without a buddy");
    check();
}

void Buddies::check() const {
    for (auto& [node, buddy] : buddy_) always(node != buddy, "a node that is its own buddy");
}

}  // namespace fermata::level
