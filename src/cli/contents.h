// This header reads what an image holds (threads, descriptors, kept files, mappings, a program's own state),
// for `fermata inspect` and `fermata verify`.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "image/image.h"
#include "level/copies.h"

namespace fermata::cli {

bool has_part(const image::Reader& reader, const char* name);

// Threads, open descriptors and working directory of one rank.
nlohmann::json contents_of(const image::Reader& reader);
// The mappings, with what of each is saved.
nlohmann::json regions_of(const image::Reader& reader);
// What a program's own state has by name.
nlohmann::json state_of(const image::Reader& reader);

// The copies of the program's files that this image names: compared with what it says of them. Throws Error.
std::vector<level::KeptFile> kept_files_of(const image::Reader& reader, const files::Folder& generation);

}  // namespace fermata::cli
