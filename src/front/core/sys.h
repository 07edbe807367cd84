// System calls without libc: no errno, no TLS, so that the agent (lower thread pointer) may run them in upper
// code.
#pragma once

#include <sys/syscall.h>
#include <time.h>

#include <cstdint>

namespace fermata::front {

inline long raw_syscall(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0, long f = 0) {
    long result;
    register long r10 asm("r10") = d;
    register long r8 asm("r8") = e;
    register long r9 asm("r9") = f;
    asm volatile("syscall"
                 : "=a"(result)
                 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                 : "rcx", "r11", "memory");
    return result;
}

inline bool failed(long result) { return result < 0 && result > -4096; }

inline void yield_cpu() { raw_syscall(SYS_sched_yield); }
inline void sleep_ns(long ns) {
    timespec wait{ns / 1000000000, ns % 1000000000};
    raw_syscall(SYS_nanosleep, reinterpret_cast<long>(&wait), 0);
}
// CLOCK_MONOTONIC by the kernel: only for slow paths (the vDSO may be remade at restart).
inline uint64_t now_ns() {
    timespec now{};
    raw_syscall(SYS_clock_gettime, 1, reinterpret_cast<long>(&now));
    return static_cast<uint64_t>(now.tv_sec) * 1000000000u + static_cast<uint64_t>(now.tv_nsec);
}
inline void cpu_pause() { __builtin_ia32_pause(); }

}  // namespace fermata::front
