// Answers that a rank's program gets from outside of MPI and its own memory, clocks first of all: a copy that
// follows the rank is told the same (docs/internals/replicas.md).
#pragma once

#include <cstddef>
#include <cstdint>

#include "front/core/front.h"

namespace fermata::front {

// Reads, or takes from the stream what the rank has read: `value`, of *size bytes, fewer if `read` says so by
// another *size. `read` must neither wait nor call MPI. `what`: for whoever asks where a rank waits.
struct Reading {
    const void* context;
    void (*read)(const void* context);
};
void read_recorded(const char* what, void* value, size_t* size, Reading reading) noexcept;

// True: what this thread reads is told, from the rank to its copy.
bool is_told() noexcept;

// Times that never go back, though another process has told the last one: a copy that has its rank's place
// has used less of the CPU than the rank. Nanoseconds or any other unit.
class Upward {
  public:
    // From what this process has used.
    int64_t next(int64_t used) noexcept {
        if (used + more_ < told_) more_ = told_ - used;
        return used + more_;
    }
    void told(int64_t value) noexcept {
        if (value > told_) told_ = value;
    }

  private:
    int64_t told_ = 0, more_ = 0;
};

inline bool keeps_log() noexcept { return __builtin_expect((front.careful & kLogged) != 0, 0); }

// As much as `read` has left in *size.
template <typename F>
void recorded_up_to(const char* what, void* value, size_t* size, const F& read) noexcept {
    if (!keeps_log()) return read();
    read_recorded(what, value, size, {&read, [](const void* f) { (*static_cast<const F*>(f))(); }});
}
template <typename F>
void recorded(const char* what, void* value, size_t size, const F& read) noexcept {
    recorded_up_to(what, value, &size, read);
}

}  // namespace fermata::front
