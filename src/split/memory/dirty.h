// Which pages the program has written since a moment: PAGEMAP_SCAN with asynchronous write protection through
// userfaultfd (Linux 6.7).
//
// The answer errs on one side only: what is not positively known to be unchanged is changed. New mappings,
// pages of memory that the kernel does not let us protect, and everything before the first look() is changed.
#pragma once

#include <map>
#include <optional>
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

    struct Seen {
        std::vector<Range> touched;    // as PageScanner::touched says
        std::vector<Range> own;        // of these, what is not (or no longer) a file's
        std::vector<Range> unchanged;  // of those touched, what has not been written since the last look
    };
    // All upper threads stand still. In one step for each page: what is written after it is seen by the next
    // look. Nothing when this map cannot be followed.
    std::optional<Seen> look(const MapEntry& map);
    // Before a round of looks at all mappings: what none of the last round saw is forgotten.
    void begin_round();

    // Huge pages are split by the first write to a protected one, so memory that has any is left alone unless
    // asked.
    void split_huge_pages(bool yes) { split_ = yes; }

  private:
    bool fits(const MapEntry& map) const;
    bool followed(Range range);
    bool scan(Range range, bool file, Seen& seen);

    // A file mapping's pages that were not the file's when it was last looked at.
    struct Own {
        Range map;
        std::vector<Range> pages;
    };
    std::map<uint64_t, Own> own_before_, own_now_;
    Fd faults_, pages_;
    bool split_ = false, huge_everywhere_ = false;
};

// "" or what this process has open that writes to memory past its page tables (RDMA adapters, XPMEM): with
// it, nobody may call a page unchanged.
std::string writes_unseen();

// Whether the kernel gives huge pages to memory that nobody asked them for.
bool huge_pages_everywhere();

}  // namespace fermata::split
