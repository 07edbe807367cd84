#include "split/memory/guards.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/page.h"
#include "base/ranges.h"
#include "base/sys.h"
#include "split/pages/pagemap.h"

namespace fermata::split {
namespace {

bool scan_for(int pagemap, Range range, uint64_t categories, std::vector<Range>& found) {
    ScanArgument a{};
    a.start = range.begin();
    a.end = range.end();
    a.category_mask = a.return_mask = categories;
    return scan_pages(pagemap, a, [&](const PageRegion& region) {
        append(found, {region.start, region.end});
    });
}

}  // namespace

GuardScanner::Way GuardScanner::best_way() {
    void* page = ::mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) fail("no memory: {}", std::strerror(errno));
    Way way = Way::none;
    if (::madvise(page, kPage, kGuardInstall) == 0) {
        const Fd pagemap(open_pagemap());
        std::vector<Range> found;
        const Range all = Range::sized(reinterpret_cast<uint64_t>(page), kPage);
        way = scan_for(pagemap.get(), all, kPageGuard, found) && !found.empty() ? Way::told : Way::tried;
    }
    ::munmap(page, kPage);
    return way;
}

GuardScanner::GuardScanner(Way way) : way_(way) {
    if (way_ != Way::none) pagemap_ = Fd(open_pagemap());
    if (way_ != Way::tried) return;
    memory_ = Fd(::open("/proc/self/mem", O_RDONLY | O_CLOEXEC));
    if (!memory_) fail("cannot open /proc/self/mem: {}", std::strerror(errno));
}

std::vector<Range> GuardScanner::of(Range mapping) {
    std::vector<Range> found;
    if (way_ == Way::none) return found;
    const uint64_t categories = way_ == Way::told ? kPageGuard : kPageSwapped;
    if (!scan_for(pagemap_.get(), mapping, categories, found))
        fail("cannot ask the kernel for guard pages at {:#x}", mapping.begin());
    if (way_ == Way::told) return found;
    std::vector<Range> guards;
    char byte;
    for (const Range& swapped : found)
        for (uint64_t at = swapped.begin(); at < swapped.end(); at += kPage)
            if (::pread(memory_.get(), &byte, 1, static_cast<off_t>(at)) != 1)
                append(guards, {at, at + kPage});
    return guards;
}

}  // namespace fermata::split
