// This header reads what an image holds besides memory (threads, descriptors, kept files), for `fermata
// inspect` and `fermata verify`.
#pragma once

#include <nlohmann/json.hpp>

#include "image/image.h"

namespace fermata::cli {

// Threads, open descriptors and working directory of one rank.
nlohmann::json contents_of(const image::Reader& reader);

// Compares what this generation keeps of the program's files with what the image says of them; throws Error.
void check_kept_files(const image::Reader& reader, const files::Folder& generation);

}  // namespace fermata::cli
