// Which pages of private memory the program has written since a moment, as the kernel marks them: by
// asynchronous write protection (protected_pages.cpp, Linux 6.7), else by soft-dirty bits (soft_dirty.cpp,
// CONFIG_MEM_SOFT_DIRTY).
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "base/fd.h"
#include "base/page.h"
#include "base/range.h"

namespace fermata::split {

struct SeenPages {
    std::vector<Range> touched;    // as PageScanner::touched says
    std::vector<Range> own;        // of these, what is not (or no longer) a file's
    std::vector<Range> unchanged;  // of those touched, what has not been written since the last look
};

class PageMarks {
  public:
    virtual ~PageMarks() = default;
    // Does it leave huge pages whole? Then these count as written as a whole.
    virtual bool keeps_huge_pages() const = 0;
    // A round looks once at each mapping. Between its end and the beginning of the next one, looks tell what
    // was written since it began.
    virtual void begin_round() {}
    virtual void end_round() {}
    // One mapping of private memory, not hugetlbfs; `file`: of a file. Nothing when it cannot be followed.
    virtual std::optional<SeenPages> look(Range map, int protection, bool file) = 0;
};

// Throw fermata::Error with the reason when this kernel cannot.
std::unique_ptr<PageMarks> protected_pages();
std::unique_ptr<PageMarks> soft_dirty_pages();
std::unique_ptr<PageMarks> best_page_marks();

}  // namespace fermata::split
