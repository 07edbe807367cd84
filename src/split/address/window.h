// An address says by itself who owns it, so that the answer needs no table and survives a restart.
//
//     0    .. 2^37  upper  non-PIE programs, MAP_32BIT, low heaps asked for by hint (Java)
//     2^37 .. 2^39  lower  what the lower half maps after partition(), with gaps between
//     2^39 .. 2^40  upper  hints of the Go runtime (0xc000000000)
//     2^40 .. 2^45  upper  the window: the kernel's top-down search puts every unhinted mmap here
//     2^45 .. 2^47  lower  what the lower half mapped until MPI_Init was over, its stack, fillers
//
// The kernel searches from the top down (mm/mmap.c, arch_get_unmapped_area_topdown), so with everything above
// the window taken, the window is next, and what lies below the window needs no filler.
#pragma once

#include "base/page.h"
#include "base/range.h"

namespace fermata::split {

inline constexpr Range kWindow{1ull << 40, 1ull << 45};
inline constexpr Range kLowerArea{1ull << 37, 1ull << 39};
inline constexpr uint64_t kUserTop = 1ull << 47;  // 4-level paging; 5-level only gives more on a hint

// Is this an address of the upper half (saved in the image)?
inline constexpr bool upper_address(uint64_t address) {
    return address < kWindow.end() && !kLowerArea.contains(address);
}
inline constexpr bool upper_range(Range range) {
    return range.end() <= kWindow.end() && !kLowerArea.overlaps(range);
}

}  // namespace fermata::split
