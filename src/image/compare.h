// unchanged_since() finds the memory that still is what an earlier image holds, by comparing checksums. It
// serves increments where the kernel cannot say which pages were written.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "image/image.h"

namespace fermata::image {

using AddressRange = std::pair<uint64_t, uint64_t>;  // begin, end

// Ranges of this process's memory whose content equals that of `base`, in address order. Only blocks that lie
// in `readable` with all of their memory are compared, each as a whole.
std::vector<AddressRange> unchanged_since(const Content& base, const std::vector<AddressRange>& readable);

}  // namespace fermata::image
