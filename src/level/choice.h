// Choice finds the newest generation that can be had for all ranks, from what the nodes say of their memory,
// and from whose memory each rank's image comes. No I/O: what it is told goes in, a verdict comes out.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/generation.h"
#include "image/checksum.h"
#include "store/generation.h"

namespace fermata::level {

// What a manifest says of one image, and what a node says of one that it has.
struct ImageIs {
    uint64_t bytes = 0;
    std::string checksum;
    bool operator==(const ImageIs&) const = default;
};

// Stands for what is said of these ranks' images.
image::Checksum sum_of(const std::map<uint32_t, ImageIs>& images);

// One that may be restarted from, as its manifest has it.
struct Candidate {
    Generation generation;
    store::LevelName level = store::LevelName::files;
    std::vector<ImageIs> images;     // by rank; of one in memory
    std::vector<std::string> hosts;  // by rank: in whose memory it was put
};

// Images that a node has to take from another one's memory.
struct Move {
    std::string from, to;
    std::vector<uint32_t> ranks;  // ascending
    bool operator==(const Move&) const = default;
};

class Choice {
  public:
    // Newest first.
    explicit Choice(std::vector<Candidate> candidates) : candidates_(std::move(candidates)) {}

    // What a node has; only whole and intact images.
    void has(const std::string& host, Generation generation, uint32_t rank, const ImageIs& image);
    // Where a rank waits for its image.
    void waits(const std::string& host, uint32_t rank) { place_[rank] = host; }
    // One of the moves of a verdict could not be made: what it would have brought counts no more.
    void failed(Generation generation, const Move& move, const std::string& why);

    struct Verdict {
        std::optional<size_t> candidate;  // none: nothing can be had
        std::vector<Move> moves;          // before the ranks find their images
        std::string lost;                 // what is newer and cannot be had, and why; "" = nothing is
    };
    Verdict verdict() const;
    // A line on images that come from other nodes; "" = none does.
    std::string taken(const Verdict& verdict) const;
    // By rank, in that case or any other: where it waits.
    const std::map<uint32_t, std::string>& places() const { return place_; }
    // Each rank's image is in the memory of nodes that do not fail together, then. `domain`: of a node.
    bool twice(const Verdict& verdict, const std::function<std::string(const std::string&)>& domain) const;

  private:
    struct Copies {
        std::map<std::string, ImageIs> at;  // by host
        std::string failure;                // why one of them could not be had
    };
    const Copies* copies_of(Generation generation, uint32_t rank) const;
    std::string find(const Candidate& candidate, uint32_t rank, const std::map<std::string, size_t>& asked,
                     std::string* from) const;
    std::string try_all(const Candidate& candidate, std::vector<Move>& moves) const;
    const std::vector<Candidate> candidates_;
    std::map<std::pair<Generation, uint32_t>, Copies> copies_;
    std::map<uint32_t, std::string> place_;
};

}  // namespace fermata::level
