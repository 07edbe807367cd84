// Choice finds the newest generation that can be had for all ranks, from what the nodes say of their memory.
// No I/O: what it is told goes in, a verdict comes out.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/generation.h"
#include "store/generation.h"

namespace fermata::level {

// What a manifest says of one image, and what a node says of one that it has.
struct ImageIs {
    uint64_t bytes = 0;
    std::string checksum;
    bool operator==(const ImageIs&) const = default;
};

// One that may be restarted from, as its manifest has it.
struct Candidate {
    Generation generation;
    store::LevelName level = store::LevelName::files;
    std::vector<ImageIs> images;     // by rank; of one in memory
    std::vector<std::string> hosts;  // by rank: in whose memory it was put
};

class Choice {
  public:
    // Newest first.
    explicit Choice(std::vector<Candidate> candidates) : candidates_(std::move(candidates)) {}

    // What a node has; only whole and intact images.
    void has(const std::string& host, Generation generation, uint32_t rank, const ImageIs& image);
    // Where a rank waits for its image.
    void waits(const std::string& host, uint32_t rank) { place_[rank] = host; }

    struct Verdict {
        std::optional<size_t> candidate;  // none: nothing can be had
        std::string lost;                 // what is newer and cannot be had, and why; "" = nothing is
    };
    Verdict verdict() const;

  private:
    std::string why_not(const Candidate& candidate) const;
    const std::vector<Candidate> candidates_;
    std::map<std::pair<Generation, uint32_t>, std::map<std::string, ImageIs>> copies_;  // by host
    std::map<uint32_t, std::string> place_;
};

}  // namespace fermata::level
