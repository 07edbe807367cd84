// RanksTook is what an event `ranks` says: how long ranks took themselves for the phases of a checkpoint, by
// blocks of neighbours (docs/formats/journal.md).
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace fermata::journal {

struct Event;

struct RanksTook {
    struct Phase {
        std::string name;
        std::vector<double> seconds;  // of the slowest rank of each block
        std::vector<int> slowest;     // which one that is
        double mean = 0;              // of all ranks
        std::string host;             // of the slowest of all

        // The block with the slowest of all; the first one of several.
        size_t worst() const;
        // So long the others have waited for it, at most.
        double excess() const { return seconds[worst()] - mean; }
    };
    int ranks = 0;
    size_t blocks = 0;  // 0: nothing is known
    std::vector<Phase> phases;

    // Its phase whose slowest rank was furthest from the mean; null: there is none.
    const Phase* longest_wait() const;
    // The first rank of a block; of `blocks`: how many there are.
    int first_of(size_t block) const;
};

// Phases that say something else for some block are left out: whatever is in it, the lists are as long as
// there are blocks, and not empty.
RanksTook ranks_took(const Event& event);

}  // namespace fermata::journal
