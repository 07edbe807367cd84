// BlockTimes is what ranks took for the phases of a checkpoint, added up (wire/times.h): of each block of
// neighbours the slowest in each phase, and the sum. The order of adding does not matter, and what has been
// added up is bounded whatever the job's size.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "wire/times.h"

namespace fermata::tree {

class BlockTimes {
  public:
    BlockTimes() = default;
    // Both take words from outside: none when they cannot be. No times at all are fine.
    static std::optional<BlockTimes> of(std::vector<wire::BlockTimes> blocks);
    static std::optional<BlockTimes> of_rank(int32_t rank, uint32_t block,
                                             const std::vector<uint64_t>& took_us);

    void add(const BlockTimes& others);
    // Ascending.
    const std::vector<wire::BlockTimes>& blocks() const { return blocks_; }
    bool empty() const { return blocks_.empty(); }
    bool operator==(const BlockTimes&) const = default;

  private:
    std::vector<wire::BlockTimes> blocks_;
};

}  // namespace fermata::tree
