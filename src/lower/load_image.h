// One rank's image comes back: the program's files, then the memory of its upper half. Two phases of a
// restart (restart.cpp).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/page.h"
#include "base/range.h"
#include "image/image.h"
#include "image/pager.h"
#include "lower/image_parts.h"
#include "split/process/path_map.h"
#include "split/process/state.h"
#include "split/shared/registry.h"

namespace fermata::lower {

// Which image, and how it is read. `seal` is of the manifest that the root has chosen, the manifest names the
// image, and the image its blocks: another image, or a damaged one, is refused.
struct WantedImage {
    std::string directory;  // of the generation
    std::string images;     // where its images are on this node; empty: in `directory`
    std::string seal;
    Rank rank;
    uint32_t size;
    split::process::PathMap moved;  // folders that are elsewhere since the checkpoint
    image::KeyPointer key;          // null: the image is not encrypted
    // Not 0: the image is of a generation that is none, with this number, of this job: it was made for a copy
    // of the rank, and nothing but it is there.
    uint32_t lone = 0;
    uint64_t job = 0;
};

// Puts the files of the program back as they were, before load_image() maps some of them; `all` or only what
// was appended to. Lines about TMPDIR and the place of the checkpoint are among the warnings.
split::process::PutBack put_files_back(const WantedImage& wanted, bool all);

// The program of a lone image; throws fermata::Error.
std::string program_of(const WantedImage& lone);
// The programs a generation is of; empty when they cannot be read (load_image will say why).
std::vector<std::string> programs_of_images(const std::string& directory, const std::string& seal,
                                            const image::Key* key);

// An image whose memory is there; nothing of the program has been used yet.
struct LoadedImage {
    image::Identity identity;
    std::string program;
    Anchors anchors;
    std::string process_state;
    files::Folder generation;  // where the rank's image lies, and copies of files
    std::vector<std::string> warnings;
    std::vector<Range> linkers;           // code of the program's dynamic linker
    std::unique_ptr<image::Pager> pager;  // memory that comes later; null = all is there
};

// Maps the memory of the upper half. `mapped`: private memory comes when it is touched, where this process
// may do that. `peers`: the other ranks, for what this one shares with them. Throws fermata::Error.
LoadedImage load_image(const WantedImage& wanted, bool mapped, split::shared::Peers peers);

}  // namespace fermata::lower
