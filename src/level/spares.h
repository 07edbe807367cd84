// Spares are files of images and of parity that went from a node's memory, kept for their pages: those of the
// generation after the next one are written over them (image/spare.h). They are given up where room gets
// scarce.
#pragma once

#include <cstdint>

#include "files/folder.h"

namespace fermata::level {

// Takes the images and the parity of a generation that goes, each in place of a smaller one of that name.
// `folder`: the directory of the job on this node, in memory. The generation is none after that.
void set_aside_images(const files::Folder& folder, const files::Folder& generation);

uint64_t bytes_of_spares(const files::Folder& folder);
// Gives all of them up.
void drop_spares(const files::Folder& folder);
// Gives them up unless as much is free as they hold: the program may want it before the next checkpoint does.
void drop_dear_spares(const files::Folder& folder);

}  // namespace fermata::level
