#include "split/pages/residency.h"

#include <fcntl.h>

#include "base/error.h"
#include "base/page.h"
#include "base/ranges.h"
#include "split/address/raw.h"
#include "split/pages/pagemap.h"

namespace fermata::split {

PageScanner::PageScanner() : fd_(open_pagemap()) {}

std::vector<Range> PageScanner::touched(Range range, bool changed_only, bool readable) {
    std::vector<Range> runs;
    if (has_scan_ && scan(range, changed_only, runs)) return runs;
    has_scan_ = false;
    runs.clear();
    read_pagemap(range, changed_only, readable, runs);
    return runs;
}

bool PageScanner::scan(Range range, bool changed_only, std::vector<Range>& runs) {
    ScanArgument a{};
    a.start = range.begin();
    a.end = range.end();
    a.category_mask = kPageZero | (changed_only ? kPageOfFile : 0);
    a.category_inverted = a.category_mask;
    a.category_anyof_mask = kPagePresent | kPageSwapped;
    a.return_mask = kPagePresent;
    return scan_pages(fd_.get(), a, [&](const PageRegion& region) {
        append(runs, {region.start, region.end});
    });
}

void PageScanner::read_pagemap(Range range, bool changed_only, bool readable, std::vector<Range>& runs) {
    for_each_page_word(fd_.get(), range, [&](uint64_t at, uint64_t word) {
        if (!(word & (kWordPresent | kWordSwapped)) || (changed_only && (word & kWordFile))) return;
        if (may_be_zero_page(word) && readable && zero_page(reinterpret_cast<const void*>(at))) return;
        append(runs, {at, at + kPage});
    });
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
    if (high && readable(range.end() - kPage)) low = high;
    while (low < high) {
        uint64_t middle = (low + high) / 2;
        if (readable(range.begin() + middle * kPage))
            low = middle + 1;
        else
            high = middle;
    }
    sys(SYS_close, pair[0]);
    sys(SYS_close, pair[1]);
    return {range.begin(), range.begin() + low * kPage};
}

std::vector<Range> nonzero(Range range) {
    std::vector<Range> runs;
    for (uint64_t at = range.begin(); at < range.end(); at += kPage)
        if (!zero_page(reinterpret_cast<const void*>(at))) append(runs, {at, at + kPage});
    return runs;
}

}  // namespace fermata::split
