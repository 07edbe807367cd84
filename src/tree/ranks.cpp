#include "tree/ranks.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/invariant.h"

namespace fermata::tree {
namespace {

int32_t end_of(const wire::Run& run) { return run.first + static_cast<int32_t>(run.count); }

}  // namespace

std::optional<Ranks> Ranks::of(const std::vector<wire::Run>& runs) {
    Ranks all;
    int64_t free = 0;  // the lowest rank that the next run may have
    for (const wire::Run& run : runs) {
        int64_t end = int64_t{run.first} + run.count;
        if (run.first < free || run.count == 0 || end > kMostRanks) return std::nullopt;
        all.append(run.first, static_cast<int32_t>(end));
        free = end;
    }
    return all;
}

void Ranks::append(int32_t first, int32_t end) {
    if (first >= end) return;
    always(runs_.empty() || end_of(runs_.back()) <= first, "runs of ranks that do not ascend");
    auto count = static_cast<uint32_t>(end - first);
    if (!runs_.empty() && end_of(runs_.back()) == first)
        runs_.back().count += count;
    else
        runs_.push_back({first, count});
    count_ += count;
}

// One pass over the borders of both: `keep(in this, in others)` says what stays.
template <class Keep>
void Ranks::combine(const Ranks& others, Keep keep) {
    Ranks result;
    size_t i = 0, j = 0;
    int32_t at = 0;
    auto border = [&](const std::vector<wire::Run>& runs, size_t& next, bool& inside) {
        while (next < runs.size() && end_of(runs[next]) <= at) ++next;
        inside = next < runs.size() && runs[next].first <= at;
        if (next == runs.size()) return INT32_MAX;
        return inside ? end_of(runs[next]) : runs[next].first;
    };
    for (;;) {
        bool mine = false, theirs = false;
        int32_t end = std::min(border(runs_, i, mine), border(others.runs_, j, theirs));
        if (end == INT32_MAX) break;
        if (keep(mine, theirs)) result.append(at, end);
        at = end;
    }
    *this = std::move(result);
}

void Ranks::add(const Ranks& others) {
    if (others.empty()) return;
    if (others.first() > last()) {
        for (const wire::Run& run : others.runs_) append(run.first, end_of(run));
    } else {
        combine(others, [](bool mine, bool theirs) { return mine || theirs; });
    }
}

void Ranks::take_away(const Ranks& others) {
    if (empty() || others.empty()) return;
    combine(others, [](bool mine, bool theirs) { return mine && !theirs; });
}

bool Ranks::contains(int32_t rank) const {
    auto after = std::upper_bound(runs_.begin(), runs_.end(), rank,
                                  [](int32_t value, const wire::Run& run) { return value < run.first; });
    return after != runs_.begin() && rank < end_of(*std::prev(after));
}

std::optional<int32_t> Ranks::common(const Ranks& others) const {
    for (size_t i = 0, j = 0; i < runs_.size() && j < others.runs_.size();) {
        int32_t first = std::max(runs_[i].first, others.runs_[j].first);
        if (first < std::min(end_of(runs_[i]), end_of(others.runs_[j]))) return first;
        if (end_of(runs_[i]) <= end_of(others.runs_[j]))
            ++i;
        else
            ++j;
    }
    return std::nullopt;
}

size_t Ranks::place_of(int32_t rank) const {
    size_t before = 0;
    for (const wire::Run& run : runs_) {
        if (run.first >= rank) break;
        before += std::min(run.count, static_cast<uint32_t>(rank - run.first));
    }
    return before;
}

std::string Ranks::text(size_t most) const {
    std::string list;
    for (const wire::Run& run : runs_) {
        if (list.size() > most) return list + ", …";
        list += fmt::format("{}{}", list.empty() ? "" : ", ", run.first);
        if (run.count > 1) list += fmt::format("-{}", end_of(run) - 1);
    }
    return list;
}

}  // namespace fermata::tree
