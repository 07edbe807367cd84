// System calls without libc: no errno, no TLS, no interposition. Results as Linux gives them: -errno on
// failure.
#pragma once

#include <sys/mman.h>
#include <sys/syscall.h>

#include <cstddef>
#include <cstdint>

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

namespace fermata::split {

template <typename A = long, typename B = long, typename C = long, typename D = long, typename E = long,
          typename F = long>
inline long sys(long number, A a = 0, B b = 0, C c = 0, D d = 0, E e = 0, F f = 0) noexcept {
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

inline long raw_mmap(uint64_t address, size_t size, int prot, int flags, int fd = -1,
                     uint64_t offset = 0) noexcept {
    return sys(SYS_mmap, address, size, prot, flags, fd, offset);
}
inline long raw_munmap(uint64_t address, size_t size) noexcept { return sys(SYS_munmap, address, size); }
inline long raw_mprotect(uint64_t address, size_t size, int prot) noexcept {
    return sys(SYS_mprotect, address, size, prot);
}

// Short critical sections that any thread, with any TLS, may enter.
class SpinLock {
  public:
    void lock() noexcept {
        while (__atomic_exchange_n(&word_, 1, __ATOMIC_ACQUIRE))
            while (__atomic_load_n(&word_, __ATOMIC_RELAXED)) sys(SYS_sched_yield);
    }
    void unlock() noexcept { __atomic_store_n(&word_, 0, __ATOMIC_RELEASE); }

  private:
    uint32_t word_ = 0;
};

}  // namespace fermata::split
