// One rank's image is made: what of the split process goes into it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "image/image.h"
#include "image/save_options.h"
#include "lower/increments.h"
#include "lower/pending_image.h"
#include "split/memory/memory.h"
#include "split/threads/mutexes.h"

namespace fermata::lower {

struct CaptureOrder {
    std::string directory;  // of the generation; checked to be the one that the root made
    image::Identity identity;
    Rank lowest_of_node;
    std::string program;
    image::SaveOptions options;
    image::KeyPointer key;  // null: the image is not encrypted
    bool files = true;      // the program's files are kept
    std::string node;       // where the rank runs
    std::string cpu;        // level of CPUs that the program is kept to; "" = none
};

// All that goes into an image is known; nothing of it is written yet but what ranks have in common.
struct CapturedImage {
    std::unique_ptr<PendingImage> image;
    split::MemoryTable table;
    bool forked = false;
    // The search for held mutexes in this process's own memory, where the child that writes does it.
    std::optional<split::threads::MutexSearch> mutexes;
    std::vector<std::string> warnings;
    std::vector<Range> covered;  // for LastImage, once the image is complete; empty: not followed
};

// All upper threads are stopped, and stay so until write_image(). `last` is used where the options ask for
// increments and name it as their base; it is forgotten in any case. Throws fermata::Error or split::Error.
CapturedImage capture_image(const CaptureOrder& order, LastImage& last);

// Writes it, or makes the child that does: then the program may go on when this returns. An image in a shared
// file has got its place before. Throws likewise.
void write_image(CapturedImage& captured);

}  // namespace fermata::lower
