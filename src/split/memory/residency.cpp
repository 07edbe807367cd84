#include "split/memory/residency.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <memory>

#include "base/error.h"
#include "base/page.h"
#include "split/address/ranges.h"
#include "split/address/raw.h"
#include "split/memory/pagemap.h"

namespace fermata::split {
namespace {

// One word per page of /proc/self/pagemap (Documentation/admin-guide/mm/pagemap.rst).
constexpr uint64_t kWordPresent = 1ull << 63, kWordSwapped = 1ull << 62, kWordFile = 1ull << 61;

}  // namespace

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

PageScanner::PageScanner() {
    long fd = sys(SYS_openat, AT_FDCWD, "/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    if (failed(fd)) fail("cannot open /proc/self/pagemap: {}", std::strerror(int(-fd)));
    fd_ = int(fd);
}

PageScanner::~PageScanner() { sys(SYS_close, fd_); }

std::vector<Range> PageScanner::touched(Range range, bool changed_only) {
    std::vector<Range> runs;
    if (has_scan_ && scan(range, changed_only, runs)) return runs;
    has_scan_ = false;
    runs.clear();
    read_pagemap(range, changed_only, runs);
    return runs;
}

bool PageScanner::scan(Range range, bool changed_only, std::vector<Range>& runs) {
    ScanArgument a{};
    a.start = range.begin;
    a.end = range.end;
    a.category_mask = kPageZero | (changed_only ? kPageOfFile : 0);
    a.category_inverted = a.category_mask;
    a.category_anyof_mask = kPagePresent | kPageSwapped;
    a.return_mask = kPagePresent;
    return scan_pages(fd_, a, [&](const PageRegion& region) { append(runs, {region.start, region.end}); });
}

void PageScanner::read_pagemap(Range range, bool changed_only, std::vector<Range>& runs) {
    constexpr size_t kWords = 32768;
    auto words = std::make_unique<uint64_t[]>(kWords);
    for (uint64_t at = range.begin; at < range.end;) {
        size_t want = std::min<uint64_t>(kWords, (range.end - at) / kPage);
        long got = sys(SYS_pread64, fd_, words.get(), want * 8, at / kPage * 8);
        if (failed(got) || got < 8)
            fail("cannot read /proc/self/pagemap: {}", std::strerror(failed(got) ? int(-got) : EIO));
        for (long i = 0; i < got / 8; ++i, at += kPage) {
            uint64_t word = words[size_t(i)];
            if (!(word & (kWordPresent | kWordSwapped))) continue;
            if (changed_only && (word & kWordFile)) continue;
            append(runs, {at, at + kPage});
        }
    }
}

Range readable_part(Range range) {
    // write(2) says EFAULT where the processor would say SIGBUS; a pipe takes one byte of each page tried.
    int pair[2];
    if (failed(sys(SYS_pipe2, pair, O_CLOEXEC | O_NONBLOCK))) fail("cannot make a pipe");
    auto readable = [&](uint64_t page) {
        char byte;
        bool ok = sys(SYS_write, pair[1], page, 1) == 1;
        if (ok) sys(SYS_read, pair[0], &byte, 1);
        return ok;
    };
    uint64_t low = 0, high = range.size() / kPage;  // pages below `low` are readable, from `high` on not
    if (high && readable(range.end - kPage)) low = high;
    while (low < high) {
        uint64_t middle = (low + high) / 2;
        if (readable(range.begin + middle * kPage))
            low = middle + 1;
        else
            high = middle;
    }
    sys(SYS_close, pair[0]);
    sys(SYS_close, pair[1]);
    return {range.begin, range.begin + low * kPage};
}

std::vector<Range> nonzero(Range range) {
    std::vector<Range> runs;
    for (uint64_t at = range.begin; at < range.end; at += kPage)
        if (!zero_page(reinterpret_cast<const void*>(at))) append(runs, {at, at + kPage});
    return runs;
}

}  // namespace fermata::split
