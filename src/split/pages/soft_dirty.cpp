#include "split/pages/soft_dirty.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/mman.h>

#include <cstring>
#include <utility>

#include "base/page.h"
#include "base/sys.h"
#include "split/pages/pagemap.h"
#include "split/pages/write_protect.h"

namespace fermata::split {
namespace {

// Two mappings of two pages each.
class Trial {
  public:
    Trial() : at_(map()), other_(map()) {}
    ~Trial() {
        ::munmap(at_, 2 * kPage);
        ::munmap(other_, 2 * kPage);
    }
    Trial(const Trial&) = delete;
    Trial& operator=(const Trial&) = delete;

    // "" or what these bits get wrong.
    std::string of(const SoftDirtyBits& bits) {
        if (at_ == MAP_FAILED || other_ == MAP_FAILED) return "no memory";
        auto at = reinterpret_cast<uint64_t>(at_), other = reinterpret_cast<uint64_t>(other_);
        auto dirty = [&] { return (bits.word(at) & kWordSoftDirty) != 0; };
        write(at_), write(other_);
        if (!bits.clear() || dirty() || !(bits.word(at) & kWordPresent))
            return "no soft-dirty bits in this kernel";
        write(at_);
        if (!dirty()) return "no soft-dirty bits in this kernel";
        // Linux 5.14 to 5.19 let a page be written again without a bit.
        bits.clear();
        ::mprotect(at_, 2 * kPage, PROT_READ);
        ::mprotect(at_, 2 * kPage, PROT_READ | PROT_WRITE);
        write(at_);
        if (!dirty()) return "this kernel's soft-dirty bits miss writes after mprotect";
        Range all{at, at + 2 * kPage};
        if (bits.registered(all) || !bits.enter(all) || !bits.registered(all) || !bits.enter(all))
            return "no write protection through userfaultfd (Linux 5.7 has it)";
        // Raw: the lower half's mremap may copy.
        if (failed(sys(SYS_mremap, at, 2 * kPage, 2 * kPage, MREMAP_MAYMOVE | MREMAP_FIXED, other)))
            return "mremap fails";
        return bits.registered({other, other + 2 * kPage}) ? "this kernel does not tell of moved memory" : "";
    }

  private:
    static void* map() {
        return ::mmap(nullptr, 2 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    }
    static void write(void* at) { *static_cast<volatile char*>(at) = 1; }

    void *at_, *other_;
};

}  // namespace

bool SoftDirtyBits::clear() const { return sys(SYS_pwrite64, clear_refs.get(), "4", 1, 0) == 1; }

uint64_t SoftDirtyBits::word(uint64_t address) const {
    uint64_t word = 0;
    return sys(SYS_pread64, pagemap.get(), &word, sizeof word, address / kPage * sizeof word) == sizeof word
               ? word
               : 0;
}

bool SoftDirtyBits::registered(Range map) const {
    // To take away a protection that is not there says ENOENT where there could be none. A part of a huge
    // page would split it.
    bool huge = map.begin() % kHugePageSize == 0 && map.size() >= kHugePageSize;
    uffdio_writeprotect none{{map.begin(), huge ? kHugePageSize : kPage}, UFFDIO_WRITEPROTECT_MODE_DONTWAKE};
    return !failed(sys(SYS_ioctl, faults.get(), UFFDIO_WRITEPROTECT, &none));
}

bool SoftDirtyBits::enter(Range map) const {
    FaultRegister all{map.begin(), map.size(), kModeWriteProtect, 0};
    return !failed(sys(SYS_ioctl, faults.get(), kFaultRegister, &all));
}

SoftDirtyBits open_soft_dirty(std::string& why) {
    SoftDirtyBits bits;
    bits.pagemap = Fd(open_pagemap());
    bits.clear_refs =
        Fd(static_cast<int>(sys(SYS_openat, AT_FDCWD, "/proc/self/clear_refs", O_WRONLY | O_CLOEXEC)));
    if (!bits.clear_refs) {
        why = "cannot open /proc/self/clear_refs";
        return {};
    }
    bits.faults = Fd(open_user_faults(UFFD_FEATURE_PAGEFAULT_FLAG_WP, why));
    if (!bits.faults) return {};
    why = Trial().of(bits);
    return why.empty() ? std::move(bits) : SoftDirtyBits{};
}

}  // namespace fermata::split
