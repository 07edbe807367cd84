// SharedFile lays out one file that holds the images of all ranks: a table of the offsets, then each image in
// a part of its own. The root knows how long each image can become before anything is written; room that
// stays unused is a hole (docs/formats/image.md).
#pragma once

#include <string>
#include <vector>

#include "base/fd.h"
#include "base/page.h"
#include "image/image.h"

namespace fermata::image {

// Inside the directory of its generation.
inline constexpr const char* kSharedName = "ranks.img";
// Parts begin at multiples of this: no two ranks write to the same stripe, block or (huge) page.
inline constexpr uint64_t kPartAlignment = kHugePageSize;

class SharedFile {
  public:
    struct Table {
        uint64_t job = 0;
        uint32_t generation = 0;
        uint64_t bytes = 0;  // of the whole file
        std::vector<uint64_t> begins;
    };

    // Creates ranks.img (0600) in the folder of a generation, empty; throws if it exists.
    explicit SharedFile(const files::Folder& folder);

    static uint64_t aligned(uint64_t at) {
        return (at + kPartAlignment - 1) / kPartAlignment * kPartAlignment;
    }
    // Where each rank's part begins when they are this long.
    static std::vector<uint64_t> lay_out(const std::vector<uint64_t>& lengths);
    // Writes the table and sets the length of the file. `end`: where the last part ends.
    void finish(uint64_t job, uint32_t generation, const std::vector<uint64_t>& begins, uint64_t end);

    const std::string& path() const { return path_; }
    void sync();

    // Throws when it is not one, damaged, or not as long as it says.
    static Table read(const Place& file);

  private:
    std::string path_;
    Fd fd_;
};

// Place of a rank's image in the directory of a generation of either layout.
Place place_of(const files::Folder& folder, Rank rank);

}  // namespace fermata::image
