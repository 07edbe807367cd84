// Memory of the upper half that the lower half has marked MADV_DONTFORK for itself (libibverbs, what it
// registers). The mark is on the mapping; the image must not give it to the program.
#pragma once

#include <cstddef>
#include <vector>

#include "base/page.h"
#include "base/range.h"

namespace fermata::split {

// Notes an madvise of the lower half. Any context.
void note_lower_advice(const void* address, size_t size, int advice) noexcept;
// In address order. Lower context.
std::vector<Range> kept_from_children_below();

}  // namespace fermata::split
