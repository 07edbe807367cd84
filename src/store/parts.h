// Parts says which images of a generation in the making lie in one file, and where in there each of them
// begins. Whoever makes the generation makes the files; each rank writes into its part.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "store/generation.h"

namespace fermata::store {

class Parts {
  public:
    // Each image in a file of its own.
    Parts() = default;
    // `node_of`: by rank, a number that ranks of one node have in common; looked at for a file per node.
    Parts(const image::Layout& layout, const std::vector<uint32_t>& node_of);

    bool together() const { return layout_.together(); }
    // Name of the file that a rank's image goes into.
    std::string file_of(Rank rank) const;
    // Creates the files, empty.
    void create(const files::Folder& generation) const;
    // `rooms`: by rank, the most bytes that the image may need.
    void lay_out(const std::vector<uint64_t>& rooms);
    // Gives the files their tables and lengths: from here on ranks may write.
    void finish(const files::Folder& generation, uint64_t job, uint32_t number) const;
    bool laid_out() const { return !begins_.empty(); }
    uint64_t begin_of(Rank rank) const { return begins_.at(rank.index()); }
    // In the manifest, which has all images: layout, files, and where each image is.
    void note_in(Manifest& manifest) const;

  private:
    struct File {
        std::string name;
        std::vector<Rank> ranks;  // ascending
        uint64_t bytes = 0;
    };
    image::Layout layout_;
    std::vector<File> files_;
    std::vector<uint32_t> file_of_;  // by rank, in files_
    std::vector<uint64_t> begins_;   // by rank
};

}  // namespace fermata::store
