#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "image/image.h"

namespace fermata::image {

using AddressRange = std::pair<uint64_t, uint64_t>;  // begin, end

// Which memory of this process is as `base` holds it, in address order: blocks all of whose memory is in
// `readable`, each compared as a whole.
std::vector<AddressRange> unchanged_since(const Content& base, const std::vector<AddressRange>& readable);

}  // namespace fermata::image
