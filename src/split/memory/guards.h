// Guard pages (MADV_GUARD_INSTALL, Linux 6.13): whoever touches one gets SIGSEGV, and no line of
// /proc/self/maps tells of them. glibc guards the stacks of threads with them, beginning with 2.42.
#pragma once

#include <vector>

#include "base/fd.h"
#include "base/range.h"

namespace fermata::split {

inline constexpr int kGuardInstall = 102;  // MADV_GUARD_INSTALL

class GuardScanner {
  public:
    enum class Way {
        none,   // this kernel has no guard pages
        told,   // PAGEMAP_SCAN tells them (Linux 6.17)
        tried,  // they look like swapped pages, but cannot be read
    };
    explicit GuardScanner(Way way = best_way());
    static Way best_way();

    // Has memory to be readable for of()?
    bool reads() const { return way_ == Way::tried; }
    // The guard pages of one mapping, in address order. Throws fermata::Error.
    std::vector<Range> of(Range mapping);

  private:
    Way way_;
    Fd pagemap_, memory_;
};

}  // namespace fermata::split
