// Memory calls and a lock without libc; see base/sys.h.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>

#include "base/annotations.h"
#include "base/sys.h"

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

namespace fermata::split {

using fermata::failed;
using fermata::sys;

inline long raw_mmap(uint64_t address, size_t size, int prot, int flags, int fd = -1,
                     uint64_t offset = 0) noexcept {
    return sys(SYS_mmap, address, size, prot, flags, fd, offset);
}
inline long raw_munmap(uint64_t address, size_t size) noexcept { return sys(SYS_munmap, address, size); }
inline long raw_mprotect(uint64_t address, size_t size, int prot) noexcept {
    return sys(SYS_mprotect, address, size, prot);
}

// Short critical sections that any thread, with any TLS, may enter.
class FERMATA_LOCK SpinLock {
  public:
    void lock() noexcept FERMATA_TAKES() {
        while (__atomic_exchange_n(&word_, 1, __ATOMIC_ACQUIRE))
            while (__atomic_load_n(&word_, __ATOMIC_RELAXED)) sys(SYS_sched_yield);
    }
    void unlock() noexcept FERMATA_GIVES() { __atomic_store_n(&word_, 0, __ATOMIC_RELEASE); }

  private:
    uint32_t word_ = 0;
};

}  // namespace fermata::split
