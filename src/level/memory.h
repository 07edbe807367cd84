// Memory is what one job has in the memory of one node, or in its local directory, which is laid out alike: a
// directory for each generation, with the images of the ranks that were there. The manifests are in the
// directory of files (store.h), and say which of these generations exist.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/generation.h"
#include "base/medium.h"
#include "base/rank.h"
#include "files/folder.h"
#include "image/image.h"

namespace fermata::level {

class Memory {
  public:
    // Makes the job's directory on this node, which is held while this lives, and removes what dead jobs of
    // this user have left. `ckpt_dir`: the job's directory of files. Throws Error.
    Memory(NodePlace place, uint64_t job, const std::string& ckpt_dir);

    const NodePlace& place() const { return place_; }
    const files::Folder& folder() const { return folder_; }
    // A directory for the next generation, when so many bytes are free; a local one is on storage. Throws
    // Error.
    files::Folder make_room(Generation generation, uint64_t bytes);
    std::string directory_of(Generation generation) const;
    // Gives none when nothing of it is here.
    std::optional<files::Folder> find(Generation generation) const;
    // Everything else goes, but for the pages of images in memory (spares.h).
    void keep(const std::vector<Generation>& generations);
    // Gives such pages up where room has become scarce; to be called now and then.
    void relieve() const;
    // Nothing of the job stays on this node; the last that is asked of this.
    void leave();

    struct Copy {
        Generation generation;
        Rank rank{0};
        image::Summary summary;
    };
    struct Flaw {
        Generation generation;
        Rank rank{0};
        std::string why;
    };
    struct Found {
        std::vector<Copy> intact;
        std::vector<Flaw> damaged;
    };
    // Looks through what is here of these generations and compares every byte, but for those for which
    // `thorough` is false: of their images only what stands for the rest of them. `given_up` ends it between
    // two images.
    Found look_for(
        const std::vector<Generation>& generations, const image::Key* key,
        const std::function<bool()>& given_up = [] { return false; },
        const std::function<bool(Generation)>& thorough = [](Generation) { return true; }) const;

  private:
    void make_lasting(const std::string& ckpt_dir) const;
    NodePlace place_;
    uint64_t job_;
    files::Folder folder_;
    Fd lock_;
};

// Finds the part of a generation in a node's directory of a job; none: nothing is there. May be called by any
// thread.
std::optional<files::Folder> find_generation(const files::Folder& folder, uint64_t job,
                                             Generation generation);

// Brings a generation in a local directory to storage: marker and names; those who wrote the files have taken
// care of these.
void sync_generation(const files::Folder& of_job, Generation generation);

// The rank whose image has this name; none: no image has it.
std::optional<Rank> rank_of_image(const std::string& name);

// LeftBehind is a directory of a job of this user's that no process on this machine holds.
struct LeftBehind {
    std::string path;
    uint64_t bytes = 0;   // of its files
    bool wanted = false;  // a restart could still go on from what it has
};
// Lists them, for every node that this machine has been. Never throws.
std::vector<LeftBehind> left_behind() noexcept;

// Removes what jobs of this user that do not run on this machine any more have on it. A generation from which
// a restart could still go on stays for an hour in memory, and for a week in local directories. In local
// directories only those of `node` go: nodes may share the file system after all, and a lock may hold on one
// of them only. Never throws.
void sweep(uint64_t but_of_job, const std::string& node) noexcept;

}  // namespace fermata::level
