// Which pages the program has written since a moment.
//
// The answer errs on one side only: what is not positively known to be unchanged is changed. New mappings,
// pages of memory that the kernel does not let us follow, and everything before the first look() is changed.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "split/memory/memory.h"
#include "split/pages/page_marks.h"

namespace fermata::split {

class DirtyTracker {
  public:
    explicit DirtyTracker(std::unique_ptr<PageMarks> marks);
    DirtyTracker(const DirtyTracker&) = delete;
    DirtyTracker& operator=(const DirtyTracker&) = delete;

    // All upper threads stand still from the beginning of a round to its end, and nobody writes to their
    // memory. A mapping that the last round did not look at is forgotten.
    void begin_round();
    void end_round() { marks_->end_round(); }
    // Nothing when this map cannot be followed. Once more after the round: what was written since.
    std::optional<SeenPages> look(const MapEntry& map);

    // Where the marks split huge pages, memory that has any is left alone unless asked.
    void split_huge_pages(bool yes) { split_ = yes; }

  private:
    bool fits(const MapEntry& map) const;

    // A file mapping's pages that were not the file's when it was last looked at.
    struct Own {
        Range map;
        std::vector<Range> pages;
    };
    std::unique_ptr<PageMarks> marks_;
    std::map<uint64_t, Own> own_before_, own_now_;
    bool split_ = false, huge_everywhere_;
};

// "" or what this process has open that writes to memory past its page tables (RDMA adapters, XPMEM): with
// it, nobody may call a page unchanged.
std::string writes_unseen();

// Whether the kernel gives huge pages to memory that nobody asked them for.
bool huge_pages_everywhere();

}  // namespace fermata::split
