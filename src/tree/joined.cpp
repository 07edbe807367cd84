#include "tree/joined.h"

#include <algorithm>
#include <tuple>

#include "tree/ranks.h"

namespace fermata::tree {

// Two processes that both say they are rank 0 (a serial program under mpiexec) stay two groups: the root
// refuses the second one.
wire::Joined joined(std::vector<wire::Hello> hellos) {
    auto key = [](const wire::Hello& one) {
        return std::tie(one.size, one.host, one.mpi, one.mpi_version, one.restarted_from);
    };
    std::stable_sort(hellos.begin(), hellos.end(), [&](const wire::Hello& a, const wire::Hello& b) {
        return key(a) != key(b) ? key(a) < key(b) : a.rank < b.rank;
    });
    wire::Joined all;
    const wire::Hello* before = nullptr;
    for (const wire::Hello& one : hellos) {
        if (!before || key(*before) != key(one) || before->rank == one.rank)
            all.groups.push_back(
                {-1, one.host, one.size, one.mpi, one.mpi_version, one.restarted_from, {}, {}});
        wire::Group& group = all.groups.back();
        if (!group.ranks.empty() &&
            group.ranks.back().first + static_cast<int32_t>(group.ranks.back().count) == one.rank)
            ++group.ranks.back().count;
        else
            group.ranks.push_back({one.rank, 1});
        group.pids.push_back(one.pid);
        before = &one;
    }
    return all;
}

}  // namespace fermata::tree
