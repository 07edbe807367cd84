// The checksum of a file's bytes, whatever they are.
#pragma once

#include <cstdint>
#include <string>

#include "files/folder.h"
#include "image/checksum.h"

namespace fermata::image {

// Sums up the first `bytes` bytes. Throws Error when the file has fewer, or cannot be read.
Checksum checksum_of_file(const files::Folder& folder, const std::string& name, uint64_t bytes);

}  // namespace fermata::image
