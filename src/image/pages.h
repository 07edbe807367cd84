// Pages owns anonymous memory of whole pages. Such memory costs nothing until it is used, and goes back to
// the kernel at once.
#pragma once
#include <sys/mman.h>

#include <cstddef>

#include "base/error.h"

namespace fermata::image {

class Pages {
  public:
    // Throws "cannot get ... KiB <purpose>".
    Pages(size_t size, const char* purpose)
        : size_(size),
          data_(::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
                       0)) {
        if (data_ == MAP_FAILED) fail_errno("cannot get {} KiB {}", size >> 10, purpose);
    }
    ~Pages() { ::munmap(data_, size_); }
    Pages(const Pages&) = delete;
    Pages& operator=(const Pages&) = delete;
    char* data() { return static_cast<char*>(data_); }

  private:
    size_t size_;
    void* data_;
};

}  // namespace fermata::image
