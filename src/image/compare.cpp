// This file finds the memory that still is as an earlier image holds it, by checksums: where nobody followed
// the writes.
#include "image/compare.h"

#include <algorithm>
#include <numeric>

#include "base/invariant.h"
#include "image/hash.h"

namespace fermata::image {
namespace {

bool inside(const std::vector<Range>& ranges, Range one) {
    auto after = std::upper_bound(ranges.begin(), ranges.end(), one.begin(),
                                  [](uint64_t at, const Range& range) { return at < range.begin(); });
    return after != ranges.begin() && std::prev(after)->contains(one);
}

std::vector<Range> merged(std::vector<Range> ranges) {
    std::sort(ranges.begin(), ranges.end(), [](auto& a, auto& b) { return a.begin() < b.begin(); });
    std::vector<Range> out;
    for (const Range& range : ranges)
        if (!out.empty() && out.back().end() == range.begin())
            out.back() = out.back().hull(range);
        else
            out.push_back(range);
    return out;
}

}  // namespace

std::vector<Range> unchanged_since(const Content& base, const std::vector<Range>& readable) {
    std::vector<Range> present = merged(readable), same;
    std::vector<uint32_t> order(base.extents.size());
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
        const Extent &x = base.extents[a], &y = base.extents[b];
        return x.block != y.block ? x.block < y.block : x.skip < y.skip;
    });
    for (size_t first = 0, last; first < order.size(); first = last) {
        uint32_t block = base.extents[order[first]].block;
        always(block < base.blocks.size(), "memory of an earlier image without a block");
        uint64_t length = 0;
        bool whole = true;
        for (last = first; last < order.size() && base.extents[order[last]].block == block; ++last) {
            const Extent& extent = base.extents[order[last]];
            // A block of which something is not in use any more has no checksum for the rest.
            whole = whole && extent.skip == length && inside(present, memory_of(extent));
            length += extent.length;
        }
        if (!whole || length != base.blocks[block].length) continue;
        Hash hash;
        for (size_t i = first; i < last; ++i) {
            const Extent& extent = base.extents[order[i]];
            hash.add(reinterpret_cast<const void*>(extent.address), extent.length);
        }
        if (hash.sum() != base.blocks[block].checksum) continue;
        for (size_t i = first; i < last; ++i) {
            const Extent& extent = base.extents[order[i]];
            same.push_back(memory_of(extent));
        }
    }
    return merged(std::move(same));
}

}  // namespace fermata::image
