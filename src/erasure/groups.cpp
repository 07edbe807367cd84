#include "erasure/groups.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/invariant.h"
#include "erasure/layout.h"

namespace fermata::erasure {
namespace {

// Nodes of each domain that are in no group yet.
class Left {
  public:
    explicit Left(const std::vector<std::string>& domains) {
        for (size_t node = domains.size(); node-- > 0;) nodes_[domains[node]].push_back(node);
    }
    size_t domains() const { return nodes_.size(); }

    // One node of each of the `count` domains that have most left; the others would be left alone.
    std::vector<size_t> take(size_t count) {
        std::vector<std::string> names;
        for (auto& [name, nodes] : nodes_) names.push_back(name);
        std::stable_sort(names.begin(), names.end(), [this](const std::string& a, const std::string& b) {
            const auto &one = nodes_.at(a), &other = nodes_.at(b);
            return one.size() != other.size() ? one.size() > other.size() : one.back() < other.back();
        });
        std::vector<size_t> taken;
        for (size_t i = 0; i < std::min(count, names.size()); ++i) taken.push_back(take_of(names[i]));
        std::sort(taken.begin(), taken.end());
        return taken;
    }

  private:
    size_t take_of(const std::string& name) {
        auto domain = nodes_.find(name);
        const size_t node = domain->second.back();
        domain->second.pop_back();
        if (domain->second.empty()) nodes_.erase(domain);
        return node;
    }
    std::map<std::string, std::vector<size_t>> nodes_;  // the next one last
};

// The smallest group without this domain; none: there is no such one.
std::optional<size_t> group_for(const std::string& domain, const std::vector<std::string>& domains,
                                const std::vector<std::vector<size_t>>& groups) {
    std::optional<size_t> best;
    for (size_t i = 0; i < groups.size(); ++i) {
        const std::vector<size_t>& group = groups[i];
        const bool there =
            std::any_of(group.begin(), group.end(), [&](size_t node) { return domains[node] == domain; });
        if (there || group.size() >= Layout::kMostMembers) continue;
        if (!best || group.size() < groups[*best].size()) best = i;
    }
    return best;
}

}  // namespace

std::vector<std::vector<size_t>> groups_of(const std::vector<std::string>& domains, const Scheme& scheme) {
    const size_t different = std::set<std::string>(domains.begin(), domains.end()).size();
    if (different <= scheme.losses())
        fail(
            "rs:{} wants at least {} failure domains to bear the loss of {}, and there {}: give it more "
            "nodes",
            scheme.to_text(), scheme.losses() + 1, scheme.losses(),
            different == 1 ? "is 1" : fmt::format("are {}", different));
    const size_t worth_it = scheme.losses() + (scheme.data() + 1) / 2;
    std::vector<std::vector<size_t>> groups;
    Left left(domains);
    while (left.domains() >= worth_it || (groups.empty() && left.domains() > 0))
        groups.push_back(left.take(scheme.members()));
    while (left.domains() > 0) {
        const std::vector<size_t> rest = left.take(scheme.members());
        std::vector<size_t> alone;
        for (size_t node : rest)
            if (auto group = group_for(domains[node], domains, groups))
                groups[*group].push_back(node);
            else
                alone.push_back(node);
        if (alone.empty()) continue;
        if (alone.size() <= scheme.losses())
            fail(
                "rs:{} cannot put the nodes of failure domain {} into groups of different domains: most "
                "nodes "
                "are in too few of them",
                scheme.to_text(), domains[alone.front()]);
        groups.push_back(alone);
    }
    size_t placed = 0;
    for (const std::vector<size_t>& group : groups) {
        always(group.size() > scheme.losses() && group.size() <= Layout::kMostMembers,
               "a group that cannot bear its losses");
        placed += group.size();
    }
    always(placed == domains.size(), "a node in no group, or in two");
    for (std::vector<size_t>& group : groups) std::sort(group.begin(), group.end());
    return groups;
}

}  // namespace fermata::erasure
