// unchanged_since() finds the memory that still is what an earlier image holds, by comparing checksums. It
// serves increments where the kernel cannot say which pages were written.
#pragma once

#include <cstdint>
#include <vector>

#include "image/image.h"

namespace fermata::image {

// Ranges of this process's memory whose content equals that of `base`, in address order. Only blocks that lie
// in `readable` with all of their memory are compared, each as a whole.
std::vector<Range> unchanged_since(const Content& base, const std::vector<Range>& readable);

}  // namespace fermata::image
