#include "split/memory/dirty.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/sys.h"
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
    constexpr uint64_t kHuge = 2 << 20;
    return !(map.advice & kHugePage) && !(huge_everywhere_ && map.range.size() >= kHuge);
}

std::vector<Range> DirtyTracker::unchanged(const MapEntry& map) {
    std::vector<Range> runs;
    if (!fits(map)) return runs;
    ScanArgument a{};
    a.start = map.range.begin;
    a.end = map.range.end;
    // Of a mapping that is followed, there, and not written.
    a.category_mask = kPageFollowed | kPageWritten;
    a.category_inverted = kPageWritten;
    a.category_anyof_mask = kPagePresent | kPageSwapped;
    a.return_mask = kPageFollowed;
    bool known = scan_pages(pages_.get(), a, [&](const PageRegion& region) {
        Range run{region.start, region.end};
        if (!runs.empty() && runs.back().end == run.begin)
            runs.back().end = run.end;
        else
            runs.push_back(run);
    });
    if (!known) return {};
    return runs;
}

bool DirtyTracker::protect(const MapEntry& map) {
    if (!fits(map)) return false;
    // Pages of a file that nobody has read yet are not there, and only what is there can be known to be
    // unchanged.
    constexpr int kPopulateRead = 22;
    if (map.name.starts_with("/")) sys(SYS_madvise, map.range.begin, map.range.size(), kPopulateRead);
    FaultRegister all{map.range.begin, map.range.size(), kModeWriteProtect, 0};
    if (failed(sys(SYS_ioctl, faults_.get(), kFaultRegister, &all))) return false;
    // Only pages that are there: without a list of regions the kernel would leave a marker in place of every
    // page that was never touched, and markers look like swapped pages.
    ScanArgument a{};
    a.flags = kScanProtect | kScanCheck;
    a.start = map.range.begin;
    a.end = map.range.end;
    a.category_mask = kPageWritten;
    a.category_anyof_mask = kPagePresent | kPageSwapped;
    a.return_mask = kPageWritten;
    return scan_pages(pages_.get(), a, [](const PageRegion&) {});
}

}  // namespace fermata::split
