#include "split/pages/pagemap.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <memory>

#include "base/error.h"
#include "base/sys.h"

namespace fermata::split {

int open_pagemap() {
    long fd = sys(SYS_openat, AT_FDCWD, "/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    if (failed(fd)) fail("cannot open /proc/self/pagemap: {}", std::strerror(static_cast<int>(-fd)));
    return static_cast<int>(fd);
}

void for_each_page_word(int pagemap, Range range,
                        const std::function<void(uint64_t at, uint64_t word)>& each) {
    constexpr size_t kWords = 32768;
    auto words = std::make_unique<uint64_t[]>(kWords);
    for (uint64_t at = range.begin(); at < range.end();) {
        size_t want = std::min<uint64_t>(kWords, (range.end() - at) / kPage);
        long got = sys(SYS_pread64, pagemap, words.get(), want * 8, at / kPage * 8);
        if (failed(got) || got < 8)
            fail("cannot read /proc/self/pagemap: {}",
                 std::strerror(failed(got) ? static_cast<int>(-got) : EIO));
        for (long i = 0; i < got / 8; ++i, at += kPage) each(at, words[static_cast<size_t>(i)]);
    }
}

bool scan_pages(int pagemap, ScanArgument what, const std::function<void(const PageRegion&)>& each) {
    PageRegion regions[512];  // as many as the kernel gathers at a time
    what.size = sizeof what;
    what.vec = reinterpret_cast<uint64_t>(regions);
    what.vec_len = std::size(regions);
    for (uint64_t end = what.end; what.start < end;) {
        what.walk_end = 0;
        long got = sys(SYS_ioctl, pagemap, kPagemapScan, &what);
        if (failed(got)) return false;
        for (size_t i = 0; i < static_cast<size_t>(got); ++i) each(regions[i]);
        // `walk_end` is where the kernel last had to empty its own list of 512 regions, if it has come to the
        // end after that: then it lies before what has been told, and going on from there would tell it
        // twice.
        uint64_t next = what.walk_end;
        if (got > 0) next = std::max(next, regions[static_cast<size_t>(got) - 1].end);
        if (next <= what.start) return false;
        what.start = next;
    }
    return true;
}

}  // namespace fermata::split
