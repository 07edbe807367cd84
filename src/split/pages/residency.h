// Which pages of a mapping hold content.
#pragma once

#include <vector>

#include "base/fd.h"
#include "split/address/maps.h"

namespace fermata::split {

class PageScanner {
  public:
    PageScanner();

    // Pages of private memory that were ever written (present or swapped out, not the zero page). For private
    // file mappings `changed_only` leaves out pages that are still the file's.
    // (Before Linux 6.7 also zero pages that cannot be read.)
    std::vector<Range> touched(Range range, bool changed_only, bool readable = true);

  private:
    bool scan(Range range, bool changed_only, std::vector<Range>& runs);
    void read_pagemap(Range range, bool changed_only, bool readable, std::vector<Range>& runs);

    Fd fd_;
    bool has_scan_ = true;  // ioctl PAGEMAP_SCAN, since Linux 6.7
};

// The part of a readable mapping that can be read at all: what lies behind the end of a file gives SIGBUS.
Range readable_part(Range range);

// Pages of readable memory that are not all zero.
std::vector<Range> nonzero(Range range);

}  // namespace fermata::split
