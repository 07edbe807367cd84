// MemoryFile writes into a file of tmpfs faster than pwrite does: through a mapping of huge pages. Where the
// kernel has no huge pages to give and other ranks write to the same file, it uses UFFDIO_COPY, which does
// not lock the inode as pwrite does. It uses no malloc, no locks of libc and no exceptions.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/lock.h"
#include "base/page.h"

namespace fermata::image {

class FileWindow;

// The part of it that one process writes. Its windows name it.
class MemoryFile {
  public:
    // Whether `file` is one.
    static bool is_one(int file) noexcept;
    // Ours is [begin, end), whole pages; nobody else maps what lies in the same 2 MiB. Makes a file that is
    // not `shared` as long as that: cut it when all is written. False: pwrite is as good.
    bool open(int file, bool shared, uint64_t begin, uint64_t end) noexcept;
    void close() noexcept;
    explicit operator bool() const noexcept { return file_ >= 0; }
    // How far the file may now go, or have pages, whatever was written to them. Nobody writes any more.
    uint64_t ahead() const noexcept { return ahead_; }

  private:
    friend class FileWindow;
    void prepare(FileWindow& window, uint64_t end) noexcept;
    bool make_long(bool shared) noexcept;

    int file_ = -1, faults_ = -1;
    uint64_t begin_ = 0, end_ = 0, huge_limit_ = 0, ahead_ = 0;
    std::atomic<uint64_t> huge_end_{0};  // all huge from begin_ to here
    std::atomic<bool> huge_{false};      // and it may go on
    Lock lock_;                          // of whoever makes huge pages
};

// One thread's view of the file.
class FileWindow {
  public:
    static constexpr uint64_t kSize = 16 << 20;
    static constexpr uint64_t kSpace = kSize + kHugePageSize;
    // `space`: kSpace bytes of addresses that nothing else uses.
    explicit FileWindow(char* space) noexcept
        : memory_(reinterpret_cast<char*>((reinterpret_cast<uint64_t>(space) + kHugePageSize - 1) &
                                          ~(kHugePageSize - 1))) {}
    // Whole pages; false: not, or not all of them, so write them in another way.
    bool put(MemoryFile& file, const char* data, uint64_t size, uint64_t at) noexcept;
    // No view of the file any more.
    void leave() noexcept;

  private:
    friend class MemoryFile;
    bool enter(MemoryFile& file, uint64_t begin) noexcept;
    bool look_at(const MemoryFile& file, uint64_t begin) noexcept;
    bool watch(const MemoryFile& file) noexcept;
    bool make_huge(uint64_t size) noexcept;

    char* memory_;
    uint64_t begin_ = UINT64_MAX, end_ = 0, huge_end_ = 0;  // in the file
    bool watched_ = false;
};

}  // namespace fermata::image
