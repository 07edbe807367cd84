// sys() makes system calls without libc: no errno, no TLS, no interposition. A result is the kernel's own:
// -errno on failure.
#pragma once

#include <sys/syscall.h>

namespace fermata {

template <typename A = long, typename B = long, typename C = long, typename D = long, typename E = long,
          typename F = long>
[[gnu::always_inline]] inline long sys(long number, A a = 0, B b = 0, C c = 0, D d = 0, E e = 0,
                                       F f = 0) noexcept {
    register long r10 asm("r10") = (long)d;
    register long r8 asm("r8") = (long)e;
    register long r9 asm("r9") = (long)f;
    long result;
    asm volatile("syscall"
                 : "=a"(result)
                 : "a"(number), "D"((long)a), "S"((long)b), "d"((long)c), "r"(r10), "r"(r8), "r"(r9)
                 : "rcx", "r11", "memory");
    return result;
}

inline bool failed(long result) noexcept { return static_cast<unsigned long>(result) > -4096ul; }

}  // namespace fermata
