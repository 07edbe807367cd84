// Writes into a file of tmpfs that others write to at the same time. There every pwrite has the inode for
// itself; pages put in through a mapping (UFFDIO_COPY) have not, and cost no more. No malloc, no locks, no
// exceptions.
#pragma once

#include <cstdint>

namespace fermata::image {

// Of one process; its windows name it.
class PagePlacer {
  public:
    // Whether that is possible here.
    bool open(int file) noexcept;
    void close() noexcept;
    explicit operator bool() const noexcept { return faults_ >= 0; }

  private:
    friend class FileWindow;
    int file_ = -1, faults_ = -1;
};

// One thread's view of the file.
class FileWindow {
  public:
    static constexpr uint64_t kSize = 64 << 20;
    // `at`: kSize bytes of address space that nothing else uses.
    explicit FileWindow(char* at) noexcept : memory_(at) {}
    // Whole pages to where the file has none; false: not, or not all of them, so write them in another way.
    bool put(const PagePlacer& placer, const char* data, uint64_t size, uint64_t at) noexcept;
    // No view of the file any more.
    void leave() noexcept;

  private:
    bool look_at(const PagePlacer& placer, uint64_t begin) noexcept;

    char* memory_;
    uint64_t begin_ = UINT64_MAX;  // in the file
};

}  // namespace fermata::image
