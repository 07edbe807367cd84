// Paths that name a process or thread by its number: /proc/PID/… and …/task/TID/….
#pragma once

#include <sys/types.h>

#include "front/core/ids.h"

namespace fermata::front::posix {

// A path of the program with the kernel's numbers in it. Other paths, and those longer than the room, stay.
class ProcPath {
  public:
    explicit ProcPath(const char* path) noexcept : path_(path) {
        if (ids_changed() && path != nullptr) translate();
    }
    ProcPath(const ProcPath&) = delete;
    ProcPath& operator=(const ProcPath&) = delete;
    const char* get() const noexcept { return path_; }

  private:
    void translate() noexcept;

    const char* path_;
    char room_[512];
};

// Rewrites what the kernel says a link or a path of /proc leads to, as the program knows the numbers: a whole
// number at the beginning of `text`, or behind "/proc/", and one behind "task/". Bytes written to `shown`,
// which has room for as many and 32 more, without a zero at the end.
size_t show_numbers(const char* text, size_t size, char* shown) noexcept;

}  // namespace fermata::front::posix
