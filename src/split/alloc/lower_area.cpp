// The allocator of address ranges in the lower area: a sorted table of free extents, first fit.
//
// Everything here may run on any thread of the lower half, also with a donor's TLS, so: raw system calls, a
// spin lock, static storage, no malloc. When the table of extents is full a freed range is forgotten (address
// space is lost, memory is not): with 8192 extents that has not been seen.
#include <cerrno>
#include <cstdint>

#include "base/page.h"
#include "split/address/raw.h"
#include "split/address/window.h"
#include "split/alloc/lower_alloc.h"
#include "split/alloc/shared_names.h"

namespace fermata::split {
namespace {

constexpr int kMaxExtents = 8192;
constexpr uint64_t kSegment = 32ull << 20;  // mimalloc 2.0's segment: aligned at once it needs no trimming

class Extents {
  public:
    // A free range of `size`, taken out of the table; 0 when there is none.
    uint64_t take(uint64_t size, uint64_t align) noexcept {
        for (int i = 0; i < count_; ++i) {
            uint64_t at = (free_[i].begin() + align - 1) & ~(align - 1);
            if (at + size <= free_[i].end() && at + size > at) {
                remove(Range::sized(at, size));
                return at;
            }
        }
        return 0;
    }
    // The same for a wanted range. False: some of it is in use.
    bool take(Range wanted) noexcept {
        for (int i = 0; i < count_; ++i)
            if (free_[i].contains(wanted)) return remove(wanted), true;
        return false;
    }
    // Marks a range as used, whether or not it was free.
    void remove(Range range) noexcept {
        for (int i = 0; i < count_; ++i) {
            Range& e = free_[i];
            if (!e.overlaps(range)) continue;
            if (range.contains(e)) {
                erase(i--);
            } else if (range.begin() <= e.begin()) {
                e = {range.end(), e.end()};
            } else if (range.end() >= e.end()) {
                e = {e.begin(), range.begin()};
            } else {
                Range tail{range.end(), e.end()};
                e = {e.begin(), range.begin()};
                insert(i + 1, tail);
                return;
            }
        }
    }
    // Marks a range as free; parts may be free already.
    void put(Range range) noexcept {
        int i = 0;
        while (i < count_ && free_[i].end() < range.begin()) ++i;
        while (i < count_ && free_[i].begin() <= range.end()) {  // touches: swallow it
            range = range.hull(free_[i]);
            erase(i);
        }
        insert(i, range);
    }

  private:
    void erase(int i) noexcept {
        for (--count_; i < count_; ++i) free_[i] = free_[i + 1];
    }
    void insert(int i, Range range) noexcept {
        if (count_ == kMaxExtents) return;
        for (int k = count_++; k > i; --k) free_[k] = free_[k - 1];
        free_[i] = range;
    }

    Range free_[kMaxExtents];
    int count_;
};

// Where the lower half may map at fixed addresses besides its area: what it had when partition() ran.
constexpr size_t kMaxOwn = 4096;
Range own[kMaxOwn];
size_t own_count;

bool fixed_allowed(Range range) noexcept {
    if (kLowerArea.contains(range) || !own_count) return true;
    for (size_t i = 0; i < own_count; ++i)
        if (own[i].contains(range)) return true;
    return false;
}

Extents area;  // all of it zero until redirect_lower_mappings(); no constructor runs
SpinLock lock;
volatile bool redirected;
volatile bool upper_spared;

// Could so much memory be at this address? The library's own arguments: the kernel would refuse them.
bool exists(uint64_t at, uint64_t size) noexcept { return size <= kUserTop && at <= kUserTop; }

// `hint`: taken where it is free, as the kernel does; shared stores want one address in every process.
uint64_t take(uint64_t hint, uint64_t size) noexcept {
    uint64_t align = size >= kSegment ? kSegment : size >= kHugePageSize ? kHugePageSize : kPage;
    lock.lock();
    const bool wanted = hint != 0 && exists(hint, size) && area.take(Range::sized(hint, size));
    const uint64_t at = wanted ? hint : area.take(size, align);
    lock.unlock();
    return at;
}

void put(Range range) noexcept {
    range = range.common(kLowerArea);
    if (range.empty()) return;
    lock.lock();
    area.put(range);
    lock.unlock();
}

// A mapping that the lower half leaves above the window must not become a gap: the kernel would choose it for
// the upper half.
long fill(Range range) noexcept {
    long rc = raw_mmap(range.begin(), range.size(), PROT_NONE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED);
    if (!failed(rc)) sys(SYS_madvise, range.begin(), range.size(), MADV_DONTDUMP);
    return failed(rc) ? rc : 0;
}

// Gives a range back to the lower area.
long give_back(Range range) noexcept {
    long rc = fill(range);
    if (!failed(rc)) put(range);
    return rc;
}

}  // namespace

void allow_fixed_mappings(const Range* ranges, size_t count) noexcept {
    for (size_t i = 0; i < count; ++i) {
        if (own_count && own[own_count - 1].end() == ranges[i].begin())
            own[own_count - 1] = own[own_count - 1].hull(ranges[i]);  // neighbours: a library's segments
        else if (own_count < kMaxOwn)
            own[own_count++] = ranges[i];
    }
}

void spare_upper_addresses() noexcept { upper_spared = true; }

void redirect_lower_mappings() noexcept {
    lock.lock();
    // (Partition looks again at what was mapped meanwhile: keep_lower_mapping.)
    if (!redirected) area.put(kLowerArea);
    redirected = true;
    lock.unlock();
}

void keep_lower_mapping(Range range) noexcept {
    lock.lock();
    area.remove(range.common(kLowerArea));
    lock.unlock();
}

long lower_mmap(void* address, size_t size, int prot, int flags, int fd, long offset) noexcept {
    auto at = reinterpret_cast<uint64_t>(address);
    bool fixed = flags & (MAP_FIXED | MAP_FIXED_NOREPLACE);
    if (fd >= 0 && (flags & MAP_SHARED) && !(flags & MAP_ANONYMOUS)) note_shared_mapping(fd);
    if (!redirected) {
        // A hint into the upper half's addresses (mimalloc likes 2 TiB) is not followed.
        if (!fixed && at && upper_address(at)) at = 0;
        if (fixed && upper_spared) {
            if (!exists(at, size)) return -ENOMEM;
            const Range range = Range::sized(at, page_up(size));
            if (at < kWindow.end() && !kLowerArea.contains(range)) return -ENOMEM;
        }
        return raw_mmap(at, size, prot, flags, fd, uint64_t(offset));
    }
    if (fixed) {
        // MPICH's symmetric heap tries random addresses, the window's among them, and goes on without when
        // all fail.
        if (!exists(at, size)) return -ENOMEM;
        const Range range = Range::sized(at, page_up(size));
        if (!fixed_allowed(range)) return -ENOMEM;
        long rc = raw_mmap(at, size, prot, flags, fd, uint64_t(offset));
        if (!failed(rc) && kLowerArea.overlaps(range)) {
            lock.lock();
            area.remove(range.common(kLowerArea));
            lock.unlock();
        }
        return rc;
    }
    if (size == 0) return -EINVAL;
    const uint64_t place = take(page_up(at), page_up(size));
    if (!place) return -ENOMEM;
    // Over the filler. Where it fails the kernel may have taken that away.
    long rc = raw_mmap(place, size, prot, (flags & ~MAP_32BIT) | MAP_FIXED, fd, uint64_t(offset));
    if (failed(rc)) give_back(Range::sized(place, page_up(size)));
    return rc;
}

long lower_munmap(void* address, size_t size) noexcept {
    auto at = reinterpret_cast<uint64_t>(address);
    const Range range = Range::sized(at, page_up(size));
    if (!redirected || (at < kWindow.end() && !kLowerArea.contains(range))) {
        long rc = raw_munmap(at, size);
        if (redirected && !failed(rc)) put(range);
        return rc;
    }
    if (at & (kPage - 1) || size == 0 || !exists(at, size)) return -EINVAL;
    if (kLowerArea.contains(range)) return give_back(range);
    return fill(range);
}

namespace {
// After a move: the old range is unmapped already and may have been taken by another thread since (above the
// window check() will then name it), so nothing is replaced.
void close_gap(Range range) noexcept {
    if (range.begin() < kWindow.end() && !kLowerArea.contains(range)) return put(range);
    long rc = raw_mmap(range.begin(), range.size(), PROT_NONE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE);
    if (!failed(rc)) put(range);
}
}  // namespace

long lower_mremap(void* address, size_t old_size, size_t new_size, int flags, void* new_address) noexcept {
    auto at = reinterpret_cast<uint64_t>(address);
    if (!redirected) return sys(SYS_mremap, at, old_size, new_size, flags, new_address);
    uint64_t before = page_up(old_size), after = page_up(new_size);
    if (flags & MREMAP_FIXED) {
        long rc = sys(SYS_mremap, at, old_size, new_size, flags, new_address);
        if (!failed(rc)) {
            auto target = reinterpret_cast<uint64_t>(new_address);
            lock.lock();
            Range used = Range::sized(target, after).common(kLowerArea);
            if (!used.empty()) area.remove(used);
            lock.unlock();
            if (before) close_gap(Range::sized(at, before));
        }
        return rc;
    }
    if (before && after <= before) {
        long rc = sys(SYS_mremap, at, old_size, new_size, 0);
        if (!failed(rc) && after < before) lower_munmap(reinterpret_cast<void*>(at + after), before - after);
        return rc;
    }
    if (!(flags & MREMAP_MAYMOVE)) return -ENOMEM;  // what lies behind is a filler or may be anybody's
    uint64_t place = take(0, after);
    if (!place) return -ENOMEM;
    long rc = sys(SYS_mremap, at, old_size, new_size, flags | MREMAP_FIXED, place);
    if (failed(rc)) {
        lower_munmap(reinterpret_cast<void*>(place), after);
        return rc;
    }
    if (before) close_gap(Range::sized(at, before));
    return rc;
}

void* lower_map(size_t size, int prot) noexcept {
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | (size >= kSegment ? MAP_NORESERVE : 0);
    long rc = lower_mmap(nullptr, size, prot, flags, -1, 0);
    return failed(rc) ? nullptr : reinterpret_cast<void*>(rc);
}

void lower_unmap(void* address, size_t size) noexcept { lower_munmap(address, size); }

}  // namespace fermata::split
