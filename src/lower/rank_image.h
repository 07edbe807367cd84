// One rank's image: what of the split process goes into it, and how it comes back.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "image/image.h"
#include "image/pager.h"
#include "image/save_options.h"
#include "lower/forked_writer.h"
#include "split/bridge.h"
#include "split/memory/dirty.h"
#include "split/memory/memory.h"
#include "split/process/path_map.h"
#include "split/process/state.h"
#include "split/shared/registry.h"
#include "split/threads/mutexes.h"

namespace fermata::lower {

// Where the two halves of this process meet, as far as src/split/process has to know.
split::process::Limits process_limits();

// An image of this rank that is being written: by a forked child, or already to its end. A file of its own is
// removed unless conclude() said that it is good.
class PendingImage {
  public:
    PendingImage(const files::Folder& folder, const image::Identity& identity, const image::WriteOptions& how,
                 split::process::Copies copies);
    ~PendingImage();

    image::Writer& writer() { return writer_; }
    bool shared() const { return shared_; }
    ForkedWriter& child() { return child_; }
    // Is anybody still writing? Throws when the child has died.
    bool done();
    int descriptor() const {
        return child_.descriptor();
    }                           // readable when done() may have changed; -1 = done
    void watch_memory() const;  // throws when the node runs out of it
    image::Summary conclude();  // and brings copies of the program's files to storage; throws what went wrong

  private:
    image::Place place_;
    bool shared_;
    image::Writer writer_;
    ForkedWriter child_;
    split::process::Copies copies_;
    bool good_ = false;
};

// What a rank remembers of its newest image, so that the next one need not hold it again.
struct Incremental {
    std::unique_ptr<split::DirtyTracker> tracker;
    bool told = false;        // that pages cannot be followed
    uint32_t generation = 0;  // of what follows; 0 = nothing
    image::Content content;
    std::vector<split::Range> covered;  // all that it held, zero pages too; address order
};

// All that goes into an image is known, nothing of it is written yet but what ranks have in common.
struct CapturedImage {
    std::unique_ptr<PendingImage> image;
    split::MemoryTable table;
    bool forked = false;
    // Of this process's own memory: left for the child that writes.
    std::optional<split::threads::MutexSearch> mutexes;
    std::vector<std::string> warnings;
    std::vector<split::Range> covered;  // for Incremental, once the image is good; empty = not followed
};

// All upper threads are stopped, and stay so until write_image(). In `directory`, as `options` say; the
// directory is checked to be the one that the root made. `files`: of the program, to be kept. `before` is
// used where they ask for increments and `base`, the newest generation that is committed, allows it, and is
// forgotten. Throws fermata::Error or split::Error.
CapturedImage capture_image(const std::string& directory, const image::Identity& identity,
                            const std::string& program, const image::SaveOptions& options,
                            const image::KeyPointer& key, bool files, Incremental& before);

// Writes it, or makes the child that does: then the program may go on when this returns. A shared one has got
// its place before. Throws likewise.
void write_image(CapturedImage& captured);

// What is known of an image before its memory is mapped.
struct LoadedImage {
    image::Identity identity;
    std::string program;
    split::UpperServices* upper = nullptr;
    std::string process_state;
    std::vector<std::string> warnings;
    std::vector<split::Range> linkers;    // code of the program's dynamic linker
    std::unique_ptr<image::Pager> pager;  // memory that comes later; null = all is there
};

// Puts the files of the program back as they were, before load_image() maps some of them; `all` or only what
// was appended to. What it says of TMPDIR and of the place of the checkpoint is among the warnings.
split::process::PutBack put_files_back(const std::string& directory, const std::string& seal, int rank,
                                       int size, bool all, const split::process::PathMap& moved,
                                       const image::Key* key);

// The programs a generation is of; empty when they cannot be read (load_image will say why).
std::vector<std::string> programs_of_images(const std::string& directory, const std::string& seal,
                                            const image::Key* key);

// Maps the memory of the upper half and takes over its thread table. Throws when the image is not the one
// expected or damaged: `seal` is of the manifest that the root has chosen, the manifest names the image, and
// the image its blocks. `mapped`: private memory comes when it is touched, where this process may do that.
// `peers`: the other ranks, for what this one shares with them.
LoadedImage load_image(const std::string& directory, const std::string& seal, int rank, int size, bool mapped,
                       const split::process::PathMap& moved, const image::Key* key,
                       split::shared::Peers peers);

}  // namespace fermata::lower
