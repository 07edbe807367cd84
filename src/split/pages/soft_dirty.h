// Soft-dirty bits: Documentation/admin-guide/mm/soft-dirty.rst, CONFIG_MEM_SOFT_DIRTY (Debian 12's kernel has
// it). Writing 4 to clear_refs clears them all; a write sets that of its page.
//
// They alone are not enough. On Linux 6.1 mremap moves whole page tables with the bits as they are, so other
// content may come where an unchanged page was. So each mapping is also registered for write protection with
// userfaultfd (and nothing in it protected, so that costs nothing): mremap drops that, and what is new has
// none.
#pragma once

#include <string>

#include "base/fd.h"
#include "base/page.h"
#include "base/range.h"

namespace fermata::split {

struct SoftDirtyBits {
    Fd pagemap, clear_refs, faults;

    bool clear() const;
    // One word of pagemap, 0 if it cannot be read.
    uint64_t word(uint64_t address) const;
    bool registered(Range map) const;
    bool enter(Range map) const;  // registers it
};

// Tries them on pages of its own; no descriptors with the reason when this kernel has not what it takes.
// Clears all bits of this process.
SoftDirtyBits open_soft_dirty(std::string& why);

}  // namespace fermata::split
