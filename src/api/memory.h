// Memory keeps generations in the memory of the nodes: a directory of tmpfs on each, with the images of its
// ranks and, as a copy, those of ranks of another node. It outlives the processes. A generation has the same
// number here as in the directory of files.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/nodes.h"
#include "api/options.h"
#include "api/ranks.h"
#include "api/staging.h"
#include "store/store.h"

namespace fermata::api {

struct Job;

class Memory {
  public:
    // Collective. Throws Fault, the same on all ranks. `directory`: of files, which names this one.
    Memory(const Ranks& ranks, Options::Memory how, const std::string& directory, image::KeyPointer key);

    // Collective. Writes this rank's image and a copy of it, and commits. Throws Fault, the same on all
    // ranks; then the generation before is there.
    void save(const Staging& staging, const Job& job, uint32_t number, const image::WriteOptions& write);

    // A generation of which nothing is missing. The same on all ranks, but the last member.
    struct Found {
        uint32_t number = 0;
        int64_t step = 0;
        std::string manifest;                       // its text
        std::vector<int> holder;                    // by image: a rank whose node has it intact
        std::vector<std::string> nodes;             // by node: a byte per image, 1 = it has it intact
        std::optional<store::GenerationInfo> here;  // what this node has of it
    };
    struct Findings {
        std::vector<Found> whole;  // newest first
        std::string lost;          // why the newest of the others cannot be had; "" = there are none
    };
    // Collective.
    Findings find() const;
    // Makes the images that `needed` says (by rank, a byte per image) readable on each rank's node, and opens
    // the generation there. Collective; throws Fault, the same on all ranks.
    store::GenerationInfo fetch(const Found& found, const std::vector<std::string>& needed) const;

    // The highest number that this node has, 0 = none. Local.
    uint32_t highest() const;
    // This rank's newest image, for a copy to files.
    const std::string& newest_image() const { return newest_image_; }
    const image::Summary& newest_summary() const { return newest_; }
    const Nodes& nodes() const { return *nodes_; }
    bool leads() const { return nodes_->leader(nodes_->node_of(ranks_.rank())) == ranks_.rank(); }
    // Nothing stays in memory, of earlier jobs of this directory neither: files have what is newer. Local.
    void clear() noexcept;

  private:
    void copy_to_buddy(const files::Folder& folder) const;
    uint64_t room_for(uint64_t mine) const;
    std::vector<Found> manifests() const;
    std::string intact(Found& one, const std::vector<store::GenerationInfo>& here) const;
    void receive(const files::Folder& folder, int image, int from, uint64_t size, char* buffer) const;
    void send(const files::Folder& folder, int image, int to, uint64_t size) const;
    static void write_whole(const files::Folder& folder, const std::string& name, const char* data,
                            uint64_t size);

    const Ranks& ranks_;
    const Options::Memory how_;
    const image::KeyPointer key_;
    std::string directory_;
    std::optional<Nodes> nodes_;
    std::optional<store::Store> store_;
    std::string newest_image_;  // its path
    image::Summary newest_;
};

}  // namespace fermata::api
