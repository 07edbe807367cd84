// This header has a lock for two kinds of caller that share no TLS: application threads (upper thread
// pointer) and the agent (lower thread pointer). The lock is one word; it uses raw futex system calls and no
// errno.
//
// It follows Drepper, "Futexes Are Tricky", mutex 2: 0 is free, 1 is held, 2 is held with waiters.
#pragma once

#include <linux/futex.h>

#include <atomic>
#include <cstdint>

#include "base/annotations.h"
#include "base/sys.h"

namespace fermata {

struct Interval {
    int64_t seconds, nanoseconds;  // the kernel's timespec on 64-bit
};

inline long raw_futex(std::atomic<uint32_t>* word, int op, uint32_t value, const Interval* timeout) {
    return sys(SYS_futex, word, op | FUTEX_PRIVATE_FLAG, value, timeout);
}

// Sleeps until *word differs from `seen`, somebody wakes it, or `us` microseconds have passed.
inline void futex_nap(std::atomic<uint32_t>* word, uint32_t seen, uint32_t us) {
    Interval limit{us / 1000000, int64_t(us % 1000000) * 1000};
    raw_futex(word, FUTEX_WAIT, seen, &limit);
}
inline void futex_wake_all(std::atomic<uint32_t>* word) { raw_futex(word, FUTEX_WAKE, INT32_MAX, nullptr); }

class FERMATA_LOCK Lock {
  public:
    void lock() FERMATA_TAKES() FERMATA_LOCKS_UNSEEN {
        uint32_t free = 0;
        if (word_.compare_exchange_strong(free, 1, std::memory_order_acquire)) return;
        for (int i = 0; i < 100; i++) {  // sections are short: most waits end here
            __builtin_ia32_pause();
            free = 0;
            if (word_.compare_exchange_strong(free, 1, std::memory_order_acquire)) return;
        }
        while (word_.exchange(2, std::memory_order_acquire) != 0) raw_futex(&word_, FUTEX_WAIT, 2, nullptr);
    }
    void unlock() FERMATA_GIVES() FERMATA_LOCKS_UNSEEN {
        if (word_.exchange(0, std::memory_order_release) == 2) raw_futex(&word_, FUTEX_WAKE, 1, nullptr);
    }
    // Frees it at a restart: no thread can be inside, and the word may have been saved at any value by a
    // broken build.
    void reset() { word_.store(0, std::memory_order_release); }

  private:
    std::atomic<uint32_t> word_{0};
};

class FERMATA_LOCK_SCOPE Locked {
  public:
    explicit Locked(Lock& lock) FERMATA_TAKES(lock) : lock_(lock) { lock_.lock(); }
    ~Locked() FERMATA_GIVES() { lock_.unlock(); }
    Locked(const Locked&) = delete;
    Locked& operator=(const Locked&) = delete;

  private:
    Lock& lock_;
};

}  // namespace fermata
