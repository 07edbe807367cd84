#include "tree/block_times.h"

#include <algorithm>
#include <utility>

#include "base/invariant.h"
#include "tree/ranks.h"

namespace fermata::tree {
namespace {

using wire::kTimedPhaseCount;

// Sums stay where they are once they are as large: so the order of adding does not matter.
constexpr uint64_t kMostSum = wire::kMostPhaseUs * kMostRanks;
static_assert(kMostSum / wire::kMostPhaseUs == kMostRanks && kMostSum <= UINT64_MAX / 2);

bool can_be(const wire::BlockTimes& one) {
    if (one.block >= wire::kMostBlocks || one.ranks == 0 || one.ranks > kMostRanks) return false;
    if (one.slowest_us.size() != kTimedPhaseCount || one.slowest.size() != kTimedPhaseCount ||
        one.sums_us.size() != kTimedPhaseCount)
        return false;
    for (size_t i = 0; i < kTimedPhaseCount; ++i)
        if (one.slowest_us[i] > wire::kMostPhaseUs || one.slowest[i] < 0 || one.slowest[i] >= kMostRanks ||
            one.sums_us[i] < one.slowest_us[i] || one.sums_us[i] > kMostSum)
            return false;
    return true;
}

// The lower one of two that are as slow.
void add_to(wire::BlockTimes& sum, const wire::BlockTimes& other) {
    always(sum.block == other.block, "times of two blocks that are added up");
    sum.ranks = std::min(sum.ranks + other.ranks, static_cast<uint32_t>(kMostRanks));
    for (size_t i = 0; i < kTimedPhaseCount; ++i) {
        if (other.slowest_us[i] > sum.slowest_us[i] ||
            (other.slowest_us[i] == sum.slowest_us[i] && other.slowest[i] < sum.slowest[i])) {
            sum.slowest_us[i] = other.slowest_us[i];
            sum.slowest[i] = other.slowest[i];
        }
        sum.sums_us[i] = std::min(sum.sums_us[i] + other.sums_us[i], kMostSum);
    }
}

}  // namespace

std::optional<BlockTimes> BlockTimes::of(std::vector<wire::BlockTimes> blocks) {
    for (size_t i = 0; i < blocks.size(); ++i)
        if (!can_be(blocks[i]) || (i > 0 && blocks[i].block <= blocks[i - 1].block)) return std::nullopt;
    BlockTimes all;
    all.blocks_ = std::move(blocks);
    return all;
}

std::optional<BlockTimes> BlockTimes::of_rank(int32_t rank, uint32_t block,
                                              const std::vector<uint64_t>& took_us) {
    if (took_us.empty()) return BlockTimes();
    return of({{block, 1, took_us, std::vector<int32_t>(took_us.size(), rank), took_us}});
}

void BlockTimes::add(const BlockTimes& others) {
    for (const wire::BlockTimes& other : others.blocks_) {
        auto at =
            std::lower_bound(blocks_.begin(), blocks_.end(), other.block,
                             [](const wire::BlockTimes& one, uint32_t block) { return one.block < block; });
        if (at != blocks_.end() && at->block == other.block)
            add_to(*at, other);
        else
            blocks_.insert(at, other);
    }
    always(blocks_.size() <= wire::kMostBlocks, "more blocks than there are");
}

}  // namespace fermata::tree
