// Files of images in memory that nobody needs any more. The next image of that name is written over one of
// them: its pages are there already, huge ones as well, and need neither be found nor filled with zeros
// first.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/fd.h"
#include "files/folder.h"

namespace fermata::image {

// Beside the generations of a node's memory.
inline constexpr const char* kSpareFolder = ".spare";

// Gives `to`/`name` the spare file `spare` of the folder beside `to`, in place of what it is, for some
// `bytes` to be written: open for writing and reading, its header gone, the rest whatever it was. Gives none
// where there is none, it is much too large, or somebody has it open still: a restart with --mapped may read
// the image that it was. Never throws.
std::optional<Fd> take_spare(const files::Folder& to, const std::string& name, const std::string& spare,
                             uint64_t bytes) noexcept;

}  // namespace fermata::image
