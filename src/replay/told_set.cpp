// Sets of instances are kept short: what closes a gap joins the prefix.
#include "replay/told_set.h"

#include <algorithm>

namespace fermata::replay {

bool ToldSet::has(Instance i) const {
    return i <= prefix_ || std::binary_search(beyond_.begin(), beyond_.end(), i);
}

void ToldSet::add(Instance i) {
    if (i <= prefix_) return;
    auto at = std::lower_bound(beyond_.begin(), beyond_.end(), i);
    if (at != beyond_.end() && *at == i) return;
    beyond_.insert(at, i);
    size_t joined = 0;
    while (joined < beyond_.size() && beyond_[joined] == next(prefix_)) {
        prefix_ = beyond_[joined];
        joined++;
    }
    beyond_.erase(beyond_.begin(), beyond_.begin() + static_cast<ptrdiff_t>(joined));
}

void ToldSet::keep_those_in(const ToldSet& other) {
    ToldSet both;
    both.prefix_ = std::min(prefix_, other.prefix_);
    for (Instance i = next(both.prefix_); i <= last(); ++i)
        if (has(i) && other.has(i)) both.add(i);
    *this = both;
}

void ToldSet::add_all(const ToldSet& other) {
    for (Instance i = next(prefix_); i <= other.prefix_; ++i) add(i);
    for (Instance i : other.beyond_) add(i);
}

bool ToldSet::has_all_of(const ToldSet& other) const {
    for (Instance i = next(prefix_); i <= other.last(); ++i)
        if (other.has(i) && !has(i)) return false;
    return true;
}

bool ToldSet::become(Instance prefix, Vec<Instance> beyond) {
    Instance before = next(prefix);  // this one would be in the prefix
    for (Instance i : beyond) {
        if (i <= before) return false;
        before = i;
    }
    prefix_ = prefix;
    beyond_ = std::move(beyond);
    return true;
}

}  // namespace fermata::replay
