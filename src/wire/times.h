// How long ranks take themselves for the phases of a checkpoint, by blocks of neighbours in the job's
// numbering: as many numbers for a hundred thousand ranks as for sixty-four.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <vector>

namespace fermata::wire {

// Phases that a rank has a part in, as docs/architecture.md names them; lists of times follow this order.
enum class TimedPhase : uint8_t { converge, freeze, drain, suspend, save };
inline constexpr const char* kTimedPhases[] = {"converge", "freeze", "drain", "suspend", "save"};
inline constexpr size_t kTimedPhaseCount = std::size(kTimedPhases);
inline constexpr uint64_t kMostPhaseUs = 100'000'000'000;  // a day and some hours; longer ones are this

inline constexpr uint32_t kMostBlocks = 64;
constexpr uint32_t blocks_of(uint32_t ranks) { return std::min(ranks, kMostBlocks); }
// One rank a block in jobs of up to 64.
constexpr uint32_t block_of(uint32_t rank, uint32_t ranks) {
    return static_cast<uint32_t>(uint64_t{rank} * blocks_of(ranks) / ranks);
}

// Each list has an entry for each phase.
struct BlockTimes {
    uint32_t block = 0;
    uint32_t ranks = 0;  // of this block, that have said their times
    std::vector<uint64_t> slowest_us;
    std::vector<int32_t> slowest;  // ranks
    std::vector<uint64_t> sums_us;
    template <class F>
    void each(F&& f) {
        f(block, ranks, slowest_us, slowest, sums_us);
    }
    bool operator==(const BlockTimes&) const = default;
};

}  // namespace fermata::wire
