#include "split/memory/dirty.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/page.h"
#include "base/sys.h"
#include "split/address/ranges.h"
#include "split/fds/descriptors.h"
#include "split/memory/pagemap.h"
#include "split/memory/write_protect.h"

namespace fermata::split {
namespace {

std::string read_line(const char* path) {
    try {
        return read_file(path);
    } catch (const Error&) {
        return {};
    }
}

// Devices that write to memory without the processor's page tables: their writes would be missed.
std::string device_that_writes() {
    std::string found;
    DIR* descriptors = ::opendir("/proc/self/fd");
    if (!descriptors) return {};
    while (dirent* entry = ::readdir(descriptors)) {
        char name[256];
        std::string link = std::string("/proc/self/fd/") + entry->d_name;
        ssize_t n = ::readlink(link.c_str(), name, sizeof name);
        if (n <= 0) continue;
        std::string target(name, static_cast<size_t>(n));
        // (io_uring: with registered buffers)
        for (const char* device : {"/dev/infiniband/", "/dev/hfi1", "/dev/cxi", "/dev/xpmem", "/dev/knem",
                                   "/dev/efa", "anon_inode:[io_uring]"})
            if (target.starts_with(device)) found = target;
    }
    ::closedir(descriptors);
    return found;
}

Fd fault_descriptor() {
    std::string why;
    Fd faults(raise_descriptor(open_write_protection(why)));
    if (!faults) fail("{}", why);
    return faults;
}

}  // namespace

bool huge_pages_everywhere() {
    return read_line("/sys/kernel/mm/transparent_hugepage/enabled").find("[always]") != std::string::npos;
}

std::string writes_unseen() {
    std::string device = device_that_writes();
    return device.empty() ? "" : fmt::format("{} may write to memory unseen", device);
}

DirtyTracker::DirtyTracker() : faults_(fault_descriptor()) {
    long fd = sys(SYS_openat, AT_FDCWD, "/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    if (failed(fd)) fail("cannot open /proc/self/pagemap: {}", std::strerror(static_cast<int>(-fd)));
    pages_ = Fd(raise_descriptor(static_cast<int>(fd)));
    huge_everywhere_ = huge_pages_everywhere();
}

bool DirtyTracker::fits(const MapEntry& map) const {
    if (map.kind != MapKind::anonymous || (map.flags & MAP_HUGETLB)) return false;
    if (split_) return true;
    return !(map.advice & kHugePage) && !(huge_everywhere_ && map.range.size() >= kHugePageSize);
}

void DirtyTracker::begin_round() {
    own_before_ = std::move(own_now_);
    own_now_.clear();
}

// Is the mapping at `range` registered already? No page needs to be there for that.
bool DirtyTracker::followed(Range range) {
    ScanArgument a{};
    a.flags = kScanCheck;
    a.start = range.begin;
    a.end = range.begin + kPage;
    a.category_mask = a.return_mask = kPageFollowed;
    return scan_pages(pages_.get(), a, [](const PageRegion&) {});
}

std::optional<DirtyTracker::Seen> DirtyTracker::look(const MapEntry& map) {
    if (!fits(map)) return {};
    bool file = !map.name.empty() && !map.name.starts_with("[");
    // Pages of a file that nobody has read yet are not there, and only what is there can be known to be
    // unchanged.
    if (file) sys(SYS_madvise, map.range.begin, map.range.size(), MADV_POPULATE_READ);
    // Asked before it is made so: pages that were moved into this mapping may bring the mark of their old one
    // (mremap before Linux 6.13).
    bool before = followed(map.range);
    // Each time: somebody else's watch in its place is refused here.
    FaultRegister all{map.range.begin, map.range.size(), kModeWriteProtect, 0};
    if (failed(sys(SYS_ioctl, faults_.get(), kFaultRegister, &all))) return {};
    Seen seen;
    if (!scan(map.range, file, seen)) return {};
    if (!before) seen.unchanged.clear();
    if (file) {
        // A page that is given back (MADV_DONTNEED) is the file's again, and keeps the mark of the one that
        // was there.
        auto last = own_before_.find(map.range.begin);
        if (last == own_before_.end() || !last->second.map.contains(map.range))
            seen.unchanged = intersection(seen.unchanged, seen.own);
        else
            seen.unchanged = difference(seen.unchanged, difference(last->second.pages, seen.own));
        own_now_[map.range.begin] = {map.range, seen.own};
    }
    return seen;
}

// The kernel looks at a page and protects it under one lock of its table. Only pages that are there: without
// a list of regions it would leave a marker in place of every page that was never touched, and markers look
// like swapped pages.
bool DirtyTracker::scan(Range range, bool file, Seen& seen) {
    ScanArgument a{};
    a.flags = kScanProtect | kScanCheck;
    a.start = range.begin;
    a.end = range.end;
    a.category_mask = a.category_inverted = kPageZero;
    a.category_anyof_mask = kPagePresent | kPageSwapped;
    a.return_mask = kPageFollowed | kPageWritten | (file ? kPagePresent | kPageOfFile : 0);
    return scan_pages(pages_.get(), a, [&](const PageRegion& region) {
        Range run{region.start, region.end};
        append(seen.touched, run);
        if (!(region.categories & kPageOfFile)) append(seen.own, run);
        // (What is left in place of a file's page that was given back looks swapped.)
        bool there = !file || (region.categories & kPagePresent);
        if (there && (region.categories & (kPageFollowed | kPageWritten)) == kPageFollowed)
            append(seen.unchanged, run);
    });
}

}  // namespace fermata::split
