// Which pages of a mapping hold content.
#pragma once

#include <vector>

#include "split/address/maps.h"

namespace fermata::split {

class PageScanner {
  public:
    PageScanner();
    ~PageScanner();
    PageScanner(const PageScanner&) = delete;
    PageScanner& operator=(const PageScanner&) = delete;

    // Pages of private memory that were ever written (present or swapped out, not the zero page). For private
    // file mappings `changed_only` leaves out pages that are still the file's.
    std::vector<Range> touched(Range range, bool changed_only);

  private:
    bool scan(Range range, bool changed_only, std::vector<Range>& runs);
    void read_pagemap(Range range, bool changed_only, std::vector<Range>& runs);

    int fd_ = -1;
    bool has_scan_ = true;  // ioctl PAGEMAP_SCAN, since Linux 6.7
};

// The part of a readable mapping that can be read at all: what lies behind the end of a file gives SIGBUS.
Range readable_part(Range range);

// Pages of readable memory that are not all zero.
std::vector<Range> nonzero(Range range);

}  // namespace fermata::split
