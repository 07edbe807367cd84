// Waiting and time by system calls alone: no errno, no TLS, so that the agent (lower thread pointer) may run
// this in upper code.
#pragma once

#include <time.h>

#include <cstdint>

#include "base/sys.h"

namespace fermata::front {

inline void yield_cpu() { sys(SYS_sched_yield); }
inline void sleep_ns(long ns) {
    timespec wait{ns / 1000000000, ns % 1000000000};
    sys(SYS_nanosleep, &wait);
}
// CLOCK_MONOTONIC by the kernel: only for slow paths (the vDSO may be remade at restart).
inline uint64_t now_ns() {
    timespec now{};
    sys(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
    return static_cast<uint64_t>(now.tv_sec) * 1000000000u + static_cast<uint64_t>(now.tv_nsec);
}
inline void cpu_pause() { __builtin_ia32_pause(); }

}  // namespace fermata::front
