// The front's own heap: a pool on raw mmap.
//
// The agent runs drain and rebuild code with the *lower* half's thread pointer, while upper threads may sit
// anywhere, also inside the application's malloc: so nothing of the front may use a libc allocator. Blocks
// come from size classes carved out of large mappings, which are upper memory and therefore part of the
// image. Any context may call (upper threads inside a wrapper, the agent); never a signal handler. Memory of
// small blocks is recycled, not returned; large blocks are mappings of their own, of which a few are kept.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>

#include "base/annotations.h"

namespace fermata::front {

// 16-byte aligned, never null (out of memory ends the job with one line); contents undefined. Size 0 is
// allowed.
void* fm_alloc(size_t size) noexcept;
void* fm_calloc(size_t size) noexcept;  // zeroed
// Keeps min(old, new) bytes. `block` may be null.
void* fm_realloc(void* block, size_t size) noexcept;
void fm_free(void* block) noexcept;  // null is allowed
char* fm_strdup(const char* text) noexcept;

struct HeapUse {
    size_t mapped;     // bytes taken from the kernel
    size_t allocated;  // bytes in live blocks, headers included
    size_t blocks;     // live blocks
};
HeapUse fm_heap_use() noexcept;

// Raw mapping for tables that are reserved once and touched as they grow. Zeroed. Never null.
void* fm_map(size_t size) noexcept;
void fm_unmap(void* start, size_t size) noexcept;

template <typename T, typename... Args>
T* fm_new(Args&&... args) noexcept {
    static_assert(alignof(T) <= 16);
    return new (fm_alloc(sizeof(T))) T(static_cast<Args&&>(args)...);
}
template <typename T>
void fm_delete(T* object) noexcept {
    if (object == nullptr) return;
    object->~T();
    fm_free(object);
}

// For std::vector and friends inside the front (compiled without exceptions: growth failure is fatal anyway).
template <typename T>
struct FmAllocator {
    using value_type = T;
    FmAllocator() noexcept = default;
    template <typename U>
    FmAllocator(const FmAllocator<U>&) noexcept {}
    T* allocate(size_t n) noexcept { return static_cast<T*>(fm_alloc(n * sizeof(T))); }
    void deallocate(T* block, size_t) noexcept { fm_free(block); }
    template <typename U>
    bool operator==(const FmAllocator<U>&) const noexcept {
        return true;
    }
};

// A lock on a plain word, usable in any context (no futex wait: holders only run a few instructions and are
// never captured while holding, see ThreadRecord::in_mpi). Zero-initialised means free.
class FERMATA_LOCK SpinLock {
  public:
    void lock() noexcept FERMATA_TAKES() {
        if (__builtin_expect(__atomic_exchange_n(&word_, 1, __ATOMIC_ACQUIRE) != 0, 0)) slow();
    }
    void unlock() noexcept FERMATA_GIVES() { __atomic_store_n(&word_, 0, __ATOMIC_RELEASE); }

  private:
    void slow() noexcept;
    uint32_t word_ = 0;
};

class FERMATA_LOCK_SCOPE SpinGuard {
  public:
    explicit SpinGuard(SpinLock& lock) noexcept FERMATA_TAKES(lock) : lock_(lock) { lock_.lock(); }
    ~SpinGuard() FERMATA_GIVES() { lock_.unlock(); }
    SpinGuard(const SpinGuard&) = delete;
    SpinGuard& operator=(const SpinGuard&) = delete;

  private:
    SpinLock& lock_;
};

}  // namespace fermata::front
