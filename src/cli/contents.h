#pragma once

#include <nlohmann/json.hpp>

#include "image/image.h"

namespace fermata::cli {

// Threads, open descriptors and working directory of one rank.
nlohmann::json contents_of(const image::Reader& reader);

}  // namespace fermata::cli
