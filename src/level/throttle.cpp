#include "level/throttle.h"

#include <unistd.h>

#include <algorithm>

#include "base/clock.h"
#include "base/invariant.h"

namespace fermata::level {
namespace {

constexpr double kLongestNap = 0.05;  // s; so that a new limit is heard

}  // namespace

void Throttle::limit(uint64_t bytes_per_second) {
    std::lock_guard hold(lock_);
    limit_ = bytes_per_second;
    due_ = 0;
}

void Throttle::spend(uint64_t bytes, const std::function<bool()>& given_up) {
    double due = 0;
    uint64_t limit = 0;
    {
        std::lock_guard hold(lock_);
        limit = limit_;
        if (limit == 0) return;
        due_ = std::max(due_, monotonic_s()) + static_cast<double>(bytes) / static_cast<double>(limit);
        due = due_;
    }
    always(limit > 0, "bytes that count against no limit");
    // With another limit, that one counts from now on.
    while (!given_up() && limit_ == limit) {
        const double left = due - monotonic_s();
        if (left <= 0) return;
        ::usleep(static_cast<useconds_t>(std::min(left, kLongestNap) * 1e6));
    }
}

}  // namespace fermata::level
