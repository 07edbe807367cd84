// Naps decides how long a thread sleeps between two looks at what it waits for: each sleep is twice as long
// as the last one, up to 1.6 ms.
//
// Sleeps must not stay at 50 us: with autogroups, Linux 6.18 lets everything else on a CPU stand still for
// seconds, kernel threads included, while one process of a session calls sched_yield all the time (Open MPI's
// ranks do when there are more ranks than cores) and another process sleeps so shortly (docs/internals/job.md
// has a program that shows it).
#pragma once

#include <cstdint>

namespace fermata {

class Naps {
  public:
    explicit Naps(uint32_t first_us) : first_(first_us), next_(first_us) {}

    uint32_t next_us() {
        const uint32_t us = next_;
        if (next_ < kLongest) next_ *= 2;
        return us;
    }
    uint32_t next_ns() { return next_us() * 1000; }
    void restart() { next_ = first_; }

  private:
    static constexpr uint32_t kLongest = 1600;
    uint32_t first_, next_;
};

}  // namespace fermata
