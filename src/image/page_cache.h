// This header reads and writes files past the page cache. A page that goes through the cache costs a copy
// and, in a virtual machine, often a page that the host has to find first.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "base/fd.h"

namespace fermata::image {

// True for file systems where O_DIRECT brings nothing (memory) or is slow or odd (network, user space).
bool page_cache_is_better(int fd);

// A file that is open for reading, opened once more with O_DIRECT. Several threads may read.
class UncachedFile {
  public:
    // `fd` stays the caller's, and open. Where there is no way past the page cache, or it is not `wanted`, it
    // is read as it is.
    UncachedFile(int fd, bool wanted);

    // Reads as many of `size` bytes at `offset`, from their beginning, as the page cache holds: 0 when that
    // is not known. Returns their number.
    uint64_t read_cached(char* to, uint64_t size, uint64_t offset) const noexcept;
    // Reads past the page cache when `to`, `size` and `offset` are of whole pages. Throws as pread_all does.
    void read(char* to, uint64_t size, uint64_t offset, const std::string& name);
    bool direct() const noexcept { return direct_.load(std::memory_order_relaxed); }

  private:
    int cached_;
    Fd uncached_;
    std::atomic<bool> direct_;
};

}  // namespace fermata::image
