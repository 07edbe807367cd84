// Choice finds the newest generation that can be had for all ranks, from what the nodes say of their memory
// and their local directories, and from where each rank's image comes. No I/O: what it is told goes in, a
// verdict comes out.
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
#include "base/medium.h"
#include "image/checksum.h"
#include "store/generation.h"

namespace fermata::level {

// An image as a manifest, or a node that has one, describes it.
struct ImageIs {
    uint64_t bytes = 0;
    std::string checksum;
    bool operator==(const ImageIs&) const = default;
};

// Sums up in one checksum what is said of these ranks' images.
image::Checksum sum_of(const std::map<uint32_t, ImageIs>& images);

// One that may be restarted from, as its manifest has it.
struct Candidate {
    Generation generation;
    store::LevelName level = store::LevelName::files;
    std::vector<ImageIs> images;                  // by rank
    std::vector<std::string> hosts;               // by rank: on which node it was put; of one that nodes keep
    std::map<uint32_t, std::string> broken = {};  // of one in files, by rank: why it is to be had from nodes
    Medium medium() const { return store::medium_of(level); }
};

// Images that a node has to take from another one, or out of its own local directory.
struct Move {
    NodePlace from;
    std::string to;               // a node: to where the ranks of the generation find their images
    std::vector<uint32_t> ranks;  // ascending
    bool operator==(const Move&) const = default;
};

class Choice {
  public:
    // Newest first.
    explicit Choice(std::vector<Candidate> candidates) : candidates_(std::move(candidates)) {}

    // Notes an image that a node has; only whole and intact images.
    void has(const NodePlace& place, Generation generation, uint32_t rank, const ImageIs& image);
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
    // The node where each rank waits, by rank; whatever the verdict.
    const std::map<uint32_t, std::string>& places() const { return place_; }
    // Each rank's image is in the memory of nodes that do not fail together, then. `domain`: of a node.
    bool twice(const Verdict& verdict, const std::function<std::string(const std::string&)>& domain) const;
    // All its images are in local directories.
    bool is_in_local(const Candidate& candidate) const;
    const std::vector<Candidate>& candidates() const { return candidates_; }

  private:
    struct Copies {
        std::map<NodePlace, ImageIs> at;
        std::string failure;  // why one of them could not be had
    };
    const Copies* copies_of(Generation generation, uint32_t rank) const;
    std::string find(const Candidate& candidate, uint32_t rank, const std::map<NodePlace, size_t>& asked,
                     std::optional<NodePlace>* from) const;
    std::string try_all(const Candidate& candidate, std::vector<Move>& moves) const;
    const std::vector<Candidate> candidates_;
    std::map<std::pair<Generation, uint32_t>, Copies> copies_;
    std::map<uint32_t, std::string> place_;
};

}  // namespace fermata::level
