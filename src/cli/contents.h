// This header reads what an image holds (threads, descriptors, mappings, a program's own state),
// for `fermata inspect` and `fermata verify`.
#pragma once

#include <nlohmann/json.hpp>

#include "image/image.h"

namespace fermata::cli {

// Threads, open descriptors and working directory of one rank.
nlohmann::json contents_of(const image::Reader& reader);
// The mappings, with what of each is saved.
nlohmann::json regions_of(const image::Reader& reader);
// Shows a program's own state, by name.
nlohmann::json state_of(const image::Reader& reader);

}  // namespace fermata::cli
