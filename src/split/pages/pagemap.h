// /proc/self/pagemap: Documentation/admin-guide/mm/pagemap.rst; PAGEMAP_SCAN: include/uapi/linux/fs.h of
// Linux 6.7 (Debian 12's headers are older).
#pragma once

#include <sys/ioctl.h>

#include <cstdint>
#include <functional>

#include "base/page.h"
#include "base/range.h"

namespace fermata::split {

// Throws fermata::Error.
int open_pagemap();

// One word per page. "Exclusive": mapped by nobody else, and not the zero page.
inline constexpr uint64_t kWordPresent = 1ull << 63, kWordSwapped = 1ull << 62, kWordFile = 1ull << 61,
                          kWordExclusive = 1ull << 56, kWordSoftDirty = 1ull << 55;

// Each page of `range` and its word, in address order. Throws fermata::Error.
void for_each_page_word(int pagemap, Range range,
                        const std::function<void(uint64_t at, uint64_t word)>& each);

// The zero page, or one that others have mapped, too.
inline bool may_be_zero_page(uint64_t word) {
    return (word & (kWordPresent | kWordFile | kWordExclusive)) == kWordPresent;
}

struct PageRegion {
    uint64_t start, end, categories;
};
struct ScanArgument {
    uint64_t size, flags, start, end, walk_end, vec, vec_len, max_pages;
    uint64_t category_inverted, category_mask, category_anyof_mask, return_mask;
};
inline constexpr unsigned long kPagemapScan = _IOWR('f', 16, ScanArgument);
inline constexpr uint64_t kScanProtect = 1 << 0, kScanCheck = 1 << 1;
// "Followed": its mapping is registered for asynchronous write protection.
inline constexpr uint64_t kPageFollowed = 1 << 0, kPageWritten = 1 << 1, kPageOfFile = 1 << 2,
                          kPagePresent = 1 << 3, kPageSwapped = 1 << 4, kPageZero = 1 << 5,
                          kPageGuard = 1 << 8;  // Linux 6.17; to all others it looks swapped, too

// `what` from its start to its end, in as many calls as that takes: each region once, in address order. False
// when the kernel refuses.
bool scan_pages(int pagemap, ScanArgument what, const std::function<void(const PageRegion&)>& each);

}  // namespace fermata::split
