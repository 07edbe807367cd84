// Job is what a program's saves have in common, the same on all ranks; and the two pieces of a save that
// files and memory share: the content of an image, and the manifest.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "api/staging.h"
#include "image/image.h"
#include "store/generation.h"

namespace fermata::api {

struct Job {
    uint64_t number = 0;
    std::string name, directory, library;
    std::vector<std::string> command;
};

// Notes in a writer what a rank has staged.
void fill(image::Writer& writer, const Staging& staging);

// A rank's image as the manifest names it. Sent as it is.
struct ImageReport {
    uint64_t bytes = 0;
    uint8_t checksum[16] = {};
};
ImageReport report_of(const image::Summary& summary);

// `images`: by rank, each in a file of its own. `key`: null = not encrypted.
store::Manifest manifest_of(const Job& job, uint32_t number, int64_t step,
                            const std::vector<ImageReport>& images, const image::Key* key);

}  // namespace fermata::api
