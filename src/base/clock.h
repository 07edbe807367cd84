// monotonic_ns() reads the clock that only moves forward (CLOCK_MONOTONIC), in nanoseconds.
#pragma once

#include <time.h>

#include <cstdint>

namespace fermata {

inline uint64_t monotonic_ns() {
    timespec t{};
    ::clock_gettime(CLOCK_MONOTONIC, &t);
    return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(t.tv_nsec);
}

}  // namespace fermata
