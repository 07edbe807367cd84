// Which pages the program has written since a moment: PAGEMAP_SCAN with asynchronous write protection through
// userfaultfd (Linux 6.7).
//
// The answer errs on one side only: what is not positively known to be unchanged is changed. New mappings,
// pages of memory that the kernel does not let us protect, and everything before the first protect() is
// changed.
#pragma once

#include <string>
#include <vector>

#include "base/fd.h"
#include "split/memory/memory.h"

namespace fermata::split {

class DirtyTracker {
  public:
    // Throws fermata::Error with the reason when this kernel cannot.
    DirtyTracker();
    DirtyTracker(const DirtyTracker&) = delete;
    DirtyTracker& operator=(const DirtyTracker&) = delete;

    // Parts of `map` that have not been written since the last protect(). All upper threads stand still.
    std::vector<Range> unchanged(const MapEntry& map);
    // From now on. False when this map cannot be followed: unchanged() then says that nothing is.
    bool protect(const MapEntry& map);

    // Huge pages are split by the first write to a protected one, so memory that has any is left alone unless
    // asked.
    void split_huge_pages(bool yes) { split_ = yes; }

  private:
    bool fits(const MapEntry& map) const;

    Fd faults_, pages_;
    bool split_ = false, huge_everywhere_ = false;
};

// "" or what this process has open that writes to memory past its page tables (RDMA adapters, XPMEM): with
// it, nobody may call a page unchanged.
std::string writes_unseen();

// Whether the kernel gives huge pages to memory that nobody asked them for.
bool huge_pages_everywhere();

}  // namespace fermata::split
