#include "split/memory/dirty.h"

#include <sys/mman.h>

#include <utility>

#include "base/error.h"
#include "base/page.h"
#include "base/ranges.h"
#include "base/sys.h"
#include "split/fds/links.h"

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
    // (io_uring: with registered buffers)
    for (const DescriptorLink& link : descriptor_links())
        for (const char* device : {"/dev/infiniband/", "/dev/hfi1", "/dev/cxi", "/dev/xpmem", "/dev/knem",
                                   "/dev/efa", "anon_inode:[io_uring]"})
            if (link.target.starts_with(device)) return link.target;
    return {};
}

}  // namespace

bool huge_pages_everywhere() {
    return read_line("/sys/kernel/mm/transparent_hugepage/enabled").find("[always]") != std::string::npos;
}

std::string writes_unseen() {
    std::string device = device_that_writes();
    return device.empty() ? "" : fmt::format("{} may write to memory unseen", device);
}

DirtyTracker::DirtyTracker(std::unique_ptr<PageMarks> marks)
    : marks_(std::move(marks)), huge_everywhere_(huge_pages_everywhere()) {}

bool DirtyTracker::fits(const MapEntry& map) const {
    if (map.kind != MapKind::anonymous || (map.flags & MAP_HUGETLB) || (map.advice & kGuard)) return false;
    if (split_ || marks_->keeps_huge_pages()) return true;
    return !(map.advice & kHugePage) && !(huge_everywhere_ && map.range.size() >= kHugePageSize);
}

void DirtyTracker::begin_round() {
    own_before_ = std::move(own_now_);
    own_now_.clear();
    marks_->begin_round();
}

std::optional<SeenPages> DirtyTracker::look(const MapEntry& map) {
    if (!fits(map)) return {};
    bool file = !map.name.empty() && !map.name.starts_with("[");
    // Pages of a file that nobody has read yet are not there, and only what is there can be known to be
    // unchanged.
    if (file) sys(SYS_madvise, map.range.begin(), map.range.size(), MADV_POPULATE_READ);
    std::optional<SeenPages> seen = marks_->look(map.range, map.prot, file);
    if (seen && file) {
        // A page that is given back (MADV_DONTNEED) is the file's again, and keeps the mark of the one that
        // was there.
        auto last = own_before_.find(map.range.begin());
        if (last == own_before_.end() || !last->second.map.contains(map.range))
            seen->unchanged = intersection(seen->unchanged, seen->own);
        else
            seen->unchanged = difference(seen->unchanged, difference(last->second.pages, seen->own));
        own_now_[map.range.begin()] = {map.range, seen->own};
    }
    return seen;
}

}  // namespace fermata::split
