// PAGEMAP_SCAN with asynchronous write protection through userfaultfd (Linux 6.7).
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/ranges.h"
#include "base/sys.h"
#include "split/fds/descriptors.h"
#include "split/pages/page_marks.h"
#include "split/pages/pagemap.h"
#include "split/pages/write_protect.h"

namespace fermata::split {
namespace {

class ProtectedPages : public PageMarks {
  public:
    ProtectedPages();
    // The first write to a protected one splits it.
    bool keeps_huge_pages() const override { return false; }
    // In one step for each page: what is written after it is seen by the next look.
    std::optional<SeenPages> look(Range map, int protection, bool file) override;

  private:
    bool followed(Range range);
    bool scan(Range range, bool file, SeenPages& seen);

    Fd faults_, pages_;
};

ProtectedPages::ProtectedPages() {
    std::string why;
    faults_ = Fd(raise_descriptor(open_write_protection(why)));
    if (!faults_) fail("{}", why);
    pages_ = Fd(raise_descriptor(open_pagemap()));
}

// Is the mapping at `range` registered already? No page needs to be there for that.
bool ProtectedPages::followed(Range range) {
    ScanArgument a{};
    a.flags = kScanCheck;
    a.start = range.begin();
    a.end = range.begin() + kPage;
    a.category_mask = a.return_mask = kPageFollowed;
    return scan_pages(pages_.get(), a, [](const PageRegion&) {});
}

std::optional<SeenPages> ProtectedPages::look(Range map, int, bool file) {
    // Asked before it is made so: pages that were moved into this mapping may bring the mark of their old one
    // (mremap before Linux 6.13).
    bool before = followed(map);
    // Each time: somebody else's watch in its place is refused here.
    FaultRegister all{map.begin(), map.size(), kModeWriteProtect, 0};
    if (failed(sys(SYS_ioctl, faults_.get(), kFaultRegister, &all))) return {};
    SeenPages seen;
    if (!scan(map, file, seen)) return {};
    if (!before) seen.unchanged.clear();
    return seen;
}

// The kernel looks at a page and protects it under one lock of its table. Only pages that are there: without
// a list of regions it would leave a marker in place of every page that was never touched, and markers look
// like swapped pages.
bool ProtectedPages::scan(Range range, bool file, SeenPages& seen) {
    ScanArgument a{};
    a.flags = kScanProtect | kScanCheck;
    a.start = range.begin();
    a.end = range.end();
    a.category_mask = a.category_inverted = kPageZero;
    a.category_anyof_mask = kPagePresent | kPageSwapped;
    a.return_mask = kPageFollowed | kPageWritten | (file ? kPagePresent | kPageOfFile : 0);
    return scan_pages(pages_.get(), a, [&](const PageRegion& region) {
        Range run{region.start, region.end};
        append(seen.touched, run);
        if (!(region.categories & kPageOfFile)) append(seen.own, run);
        // (A page of a file that was given back leaves something that looks swapped.)
        bool there = !file || (region.categories & kPagePresent);
        if (there && (region.categories & (kPageFollowed | kPageWritten)) == kPageFollowed)
            append(seen.unchanged, run);
    });
}

}  // namespace

std::unique_ptr<PageMarks> protected_pages() { return std::make_unique<ProtectedPages>(); }

}  // namespace fermata::split
