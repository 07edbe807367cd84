// PAGEMAP_SCAN: include/uapi/linux/fs.h of Linux 6.7; Debian 12's headers are older.
#pragma once

#include <sys/ioctl.h>

#include <cstdint>
#include <functional>

namespace fermata::split {

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
                          kPagePresent = 1 << 3, kPageSwapped = 1 << 4, kPageZero = 1 << 5;

// `what` from its start to its end, in as many calls as that takes: each region once, in address order. False
// when the kernel refuses.
bool scan_pages(int pagemap, ScanArgument what, const std::function<void(const PageRegion&)>& each);

}  // namespace fermata::split
