// System calls without a libc: usable with any thread pointer.
//
// Code that runs on an upper thread but belongs to the lower half (stop handler, attach, restart trampoline)
// must not touch the lower libc: its errno would be written through the *upper* thread pointer. Everything
// here is one `syscall` instruction and returns the kernel's own value (-errno).
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>

#include <cstdint>

#include "base/sys.h"

namespace fermata::split::raw {

#define FERMATA_RAW __attribute__((always_inline)) inline

FERMATA_RAW long call(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0, long f = 0) {
    return sys(number, a, b, c, d, e, f);
}

template <class T>
FERMATA_RAW long word(T* pointer) {
    return reinterpret_cast<long>(pointer);
}

FERMATA_RAW int gettid() { return static_cast<int>(call(SYS_gettid)); }
FERMATA_RAW int getpid() { return static_cast<int>(call(SYS_getpid)); }

// Waits while *word == expected; `timeout` is relative, null = no end. Returns 0, -EAGAIN, -EINTR or
// -ETIMEDOUT.
FERMATA_RAW long futex_wait(const volatile void* where, uint32_t expected,
                            const timespec* timeout = nullptr) {
    return call(SYS_futex, word(where), FUTEX_WAIT_PRIVATE, expected, word(timeout));
}
FERMATA_RAW long futex_wake(const volatile void* where, int count = 1 << 30) {
    return call(SYS_futex, word(where), FUTEX_WAKE_PRIVATE, count);
}

// Kernel signal sets are 64 bits on this architecture.
using SignalSet = uint64_t;
inline constexpr SignalSet signal_bit(int number) { return SignalSet{1} << (number - 1); }
inline constexpr SignalSet kAllSignals = ~SignalSet{0};
FERMATA_RAW SignalSet set_signal_mask(SignalSet mask) {
    SignalSet old = 0;
    call(SYS_rt_sigprocmask, 2 /* SIG_SETMASK */, word(&mask), word(&old), 8);
    return old;
}

// The kernel's own `struct sigaction`, as rt_sigaction reads and writes it.
struct KernelSigaction {
    uint64_t handler;
    uint64_t flags;
    uint64_t restorer;
    SignalSet mask;
};
inline constexpr uint64_t kSaRestorer = 0x04000000;

#undef FERMATA_RAW

}  // namespace fermata::split::raw
