// Memory that is probably the same in many ranks: program text and other read-only parts of files. It is
// saved once for all ranks that hold the same. A wrong guess costs space, nothing else: what is the same is
// decided by content.
#pragma once

#include <vector>

#include "image/image.h"
#include "split/memory/memory.h"

namespace fermata::lower {

// Ranges that are likely to be found together, in one file or in several small ones.
using TextUnit = std::vector<Range>;

// In `table`; all of it is part of the maps' runs and can be read.
std::vector<TextUnit> text_units(const split::MemoryTable& table);

// A restarted process's mappings have no file any more: they come from the image.
void remember_text(const image::Reader& reader);

}  // namespace fermata::lower
