#include "base/ranges.h"

#include <algorithm>

namespace fermata {

void append(std::vector<Range>& ranges, Range run) {
    if (!ranges.empty() && ranges.back().end() == run.begin())
        ranges.back() = {ranges.back().begin(), run.end()};
    else
        ranges.push_back(run);
}

std::vector<Range> intersection(const std::vector<Range>& a, const std::vector<Range>& b) {
    std::vector<Range> both;
    if (a.empty() || b.empty()) return both;
    auto before = [](const Range& range, uint64_t address) { return range.end() <= address; };
    auto i = std::lower_bound(a.begin(), a.end(), b.front().begin(), before);
    auto k = std::lower_bound(b.begin(), b.end(), a.front().begin(), before);
    while (i != a.end() && k != b.end()) {
        if (Range common = i->common(*k); !common.empty()) both.push_back(common);
        ++(i->end() < k->end() ? i : k);
    }
    return both;
}

std::vector<Range> difference(const std::vector<Range>& a, const std::vector<Range>& b) {
    std::vector<Range> rest;
    for (const Range& range : a) {
        uint64_t at = range.begin();
        for (const Range& part : intersection(b, {range})) {
            if (part.begin() > at) rest.push_back({at, part.begin()});
            at = part.end();
        }
        if (range.end() > at) rest.push_back({at, range.end()});
    }
    return rest;
}

}  // namespace fermata
