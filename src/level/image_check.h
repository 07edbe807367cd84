// Whether an image on a node is the one of its name, and whole.
#pragma once

#include <cstdint>

#include "base/generation.h"
#include "files/folder.h"
#include "image/image.h"

namespace fermata::level {

// Throws Error when it is of another job, generation or rank.
void check_identity(const image::Reader& reader, uint64_t job, Generation generation, Rank rank);
// Compares every byte of the image in `folder`, of what it refers to, and of the program's files beside it.
// `threads`: 0 = as many as the node has cores. Throws Error.
void check_content(const image::Reader& reader, const files::Folder& folder, unsigned threads = 0);

}  // namespace fermata::level
