// Files that a rank with a copy opens, makes and names: the rank does it, and the copy is told how it ended
// (docs/internals/replicas.md). The copy's program writes into shadows (lower/written_files.h).
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include <cstdint>

#include "front/core/recorded.h"

namespace fermata::front::posix {

// Uses of a descriptor. `other`: reads and writes; `nameless`: a file that only this process will see.
enum class Wish { read, write, append, other, nameless };

inline Wish wish_of(int flags) noexcept {
    if ((flags & O_PATH) != 0) return Wish::read;
    if ((flags & O_TMPFILE) == O_TMPFILE) return Wish::nameless;
    if ((flags & O_ACCMODE) == O_WRONLY) return (flags & O_APPEND) != 0 ? Wish::append : Wish::write;
    return (flags & O_ACCMODE) == O_RDONLY && (flags & (O_TRUNC | O_CREAT)) == 0 ? Wish::read : Wish::other;
}
inline bool has(const char* mode, char letter) noexcept {
    for (; *mode != 0 && *mode != ','; ++mode)
        if (*mode == letter) return true;
    return false;
}
inline Wish wish_of(const char* mode) noexcept {
    if (has(mode, '+')) return Wish::other;
    return *mode == 'r' ? Wish::read : *mode == 'w' ? Wish::write : Wish::append;
}
// Flags and mode with which the program of a copy opens a shadow, which is there.
inline int for_shadow(int flags) noexcept { return flags & ~(O_CREAT | O_EXCL | O_NOFOLLOW); }
inline const char* for_shadow(const char* mode) noexcept {
    const bool both = has(mode, '+'), exec = has(mode, 'e');
    if (*mode == 'a') return both ? exec ? "a+e" : "a+" : exec ? "ae" : "a";
    if (both) return exec ? "r+e" : "r+";
    return exec ? "we" : "w";
}

// How an open ended.
struct Opened {
    int error = 0;  // 0: well
    uint32_t regular = 0;
    uint64_t device = 0, inode = 0;
    int64_t size = 0, changed = 0;  // changed: ns
    bool operator==(const Opened&) const = default;
};
Opened opened(int descriptor) noexcept;
// Says whether each process looks at such a path for itself.
bool is_own(const char* path) noexcept;
// Ends this process, if it is a copy, before it does to the file what is the rank's to do.
void no_copy_may(const char* path) noexcept;
// The path by which the copy's program opens a shadow of the file.
struct ShadowPath {
    char text[40];
};
ShadowPath shadow_of(int directory, const char* path, int64_t size) noexcept;
// Ends a copy that has opened another file than its rank, or the file after a change.
void must_be_same(int descriptor, const Opened& was, const char* path) noexcept;

// A file of /proc as the rank has read it when its program opened it, for both processes: numbers of memory
// and time differ between them. -1: `error` says why not; none: each opens it for itself.
class Snapshot {
  public:
    explicit Snapshot(const char* path) noexcept;
    ~Snapshot();
    Snapshot(const Snapshot&) = delete;
    Snapshot& operator=(const Snapshot&) = delete;
    bool taken() const { return descriptor_ >= 0; }
    int error() const { return error_; }
    const char* path() const { return text_; }

  private:
    int descriptor_ = -1;
    int error_ = 0;
    char text_[40];
};
// Says whether the kernel writes the file, and nobody else may: a program that opens it also for writing (as
// Fortran's OPEN does where nothing is said) only reads.
bool changes_by_itself(const char* path, Wish wish) noexcept;

inline int descriptor_of(int descriptor) noexcept { return descriptor; }
inline int descriptor_of(FILE* file) noexcept { return file != nullptr ? fileno(file) : -1; }
inline void refused(int* result) noexcept { *result = -1; }
inline void refused(FILE** result) noexcept { *result = nullptr; }

// A change of names, and of what is behind them.
template <class Call>
int told_change(const char* path, const Call& call) noexcept {
    if (!keeps_log() || path == nullptr) return call();
    if (!is_told()) {
        no_copy_may(path);
        return call();
    }
    struct {
        int result, error;
    } was{};
    recorded("a change of file names", &was, sizeof was, [&] {
        was.result = call();
        was.error = errno;
    });
    if (was.result < 0) errno = was.error;
    return was.result;
}

// A look at a file, which leaves an answer of `size` bytes. An empty path: at what the process has open.
template <class Call>
int told_look(const char* path, void* answer, size_t size, const Call& call) noexcept {
    if (!keeps_log() || path == nullptr || *path == 0 || is_own(path) || !is_told()) return call();
    struct {
        int result, error;
        char bytes[512];
    } was{};
    if (size > sizeof was.bytes) size = sizeof was.bytes;
    bool here = false;
    recorded("a look at a file", &was, sizeof was, [&] {
        here = true;
        was.result = call();
        was.error = errno;
        if (was.result == 0 && size > 0) __builtin_memcpy(was.bytes, answer, size);
    });
    if (was.result == 0 && !here && size > 0) __builtin_memcpy(answer, was.bytes, size);
    if (was.result != 0) errno = was.error;
    return was.result;
}

}  // namespace fermata::front::posix
