// The clock that only moves forward (CLOCK_MONOTONIC), in nanoseconds, milliseconds and seconds.
#pragma once

#include <time.h>

#include <cstdint>

namespace fermata {

inline uint64_t monotonic_ns() {
    timespec t{};
    ::clock_gettime(CLOCK_MONOTONIC, &t);
    return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(t.tv_nsec);
}
inline int64_t monotonic_ms() { return static_cast<int64_t>(monotonic_ns() / 1'000'000); }
inline double monotonic_s() { return static_cast<double>(monotonic_ns()) * 1e-9; }

}  // namespace fermata
