// SharedFile lays out one file that holds the images of several ranks: a table of the offsets, then each
// image in a part of its own. The root knows how long each image can become before anything is written; room
// that stays unused is a hole (docs/formats/image.md).
#pragma once

#include <string>
#include <vector>

#include "base/fd.h"
#include "base/page.h"
#include "image/image.h"
#include "image/layout.h"

namespace fermata::image {

// Parts begin at multiples of this: no two ranks write to the same stripe, block or (huge) page.
inline constexpr uint64_t kPartAlignment = kHugePageSize;

class SharedFile {
  public:
    struct Table {
        uint64_t job = 0;
        uint32_t generation = 0;
        uint64_t bytes = 0;            // of the whole file
        std::vector<Rank> ranks;       // ascending
        std::vector<uint64_t> begins;  // of each of them
        std::optional<uint64_t> begin_of(Rank rank) const;
    };

    // Creates the file (0600) in the folder of a generation, empty; throws if it exists. It stays closed: a
    // job may have more of them than a process may open files.
    explicit SharedFile(const files::Folder& folder, const std::string& name = kSharedName);
    // One that was created before.
    static SharedFile made(const files::Folder& folder, const std::string& name) {
        return {folder, name, {}};
    }

    static uint64_t aligned(uint64_t at) {
        return (at + kPartAlignment - 1) / kPartAlignment * kPartAlignment;
    }
    // Where each part begins when they are this long.
    static std::vector<uint64_t> lay_out(const std::vector<uint64_t>& lengths);
    // Writes the table and sets the length of the file. `ranks`: whose the parts are, ascending; none: of all
    // ranks from 0 on. `end`: where the last part ends.
    void finish(uint64_t job, uint32_t generation, const std::vector<uint64_t>& begins, uint64_t end,
                const std::vector<Rank>& ranks = {}) const;

    const std::string& name() const { return name_; }
    std::string path() const { return folder_.path_of(name_); }
    void sync() const;

    // Throws when it is not one, damaged, or not as long as it says.
    static Table read(const Place& file);

  private:
    struct Made {};
    SharedFile(const files::Folder& folder, std::string name, Made)
        : folder_(folder), name_(std::move(name)) {}
    files::Folder folder_;
    std::string name_;
};

// Place of a rank's image in the directory of a generation with a file for each, or one for all.
Place place_of(const files::Folder& folder, Rank rank);
// In one with a file for each group: `lowest` is the group's.
Place place_in_group(const files::Folder& folder, Rank lowest, Rank rank);

}  // namespace fermata::image
