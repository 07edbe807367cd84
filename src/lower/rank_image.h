// One rank's image: what of the split process goes into it, and how it comes back.
#pragma once

#include <string>
#include <vector>

#include "image/image.h"
#include "split/bridge.h"
#include "split/process/state.h"

namespace fermata::lower {

// Where the two halves of this process meet, as far as src/split/process has to know.
split::process::Limits process_limits();

struct SavedImage {
    image::Summary summary;
    uint64_t writing_since = 0;  // monotonic_ns() when all was known and only writing was left
    std::vector<std::string> warnings;
};

// All upper threads are stopped. Writes `path`. Throws fermata::Error or split::Error; the file is then
// removed.
SavedImage save_image(const std::string& path, const image::Identity& identity, const std::string& program);

// What is known of an image before its memory is mapped.
struct LoadedImage {
    image::Identity identity;
    std::string program;
    split::UpperServices* upper = nullptr;
    std::string process_state;
    std::vector<std::string> warnings;
};

// The program an image is of; empty when it cannot be read (load_image will say why).
std::string program_of_image(const std::string& path);

// Maps the memory of the upper half and takes over its thread table. Throws when the image is not the one
// expected or damaged.
LoadedImage load_image(const std::string& path, int rank, int size);

}  // namespace fermata::lower
