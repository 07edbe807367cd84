// Notes which files the program writes to (split/noted_files.h), by what it calls in libc.
#pragma once

#include <fcntl.h>
#include <stdio.h>

#include <cstdint>

#include "split/noted_files.h"

namespace fermata::front::posix {

// True for paths whose files belong to the kernel and not to the job. Files in memory are ("scratch").
bool is_of_the_kernel(const char* path) noexcept;

// `path` as the program gave it, relative to the descriptor `directory`. Any context, signal handlers too;
// errno stays as it is.
void note_file(int directory, const char* path, uint32_t how) noexcept;

// The file behind an open descriptor by its own name: it may have been opened through a symbolic link.
void note_descriptor(int fd, uint32_t how) noexcept;

// Says how an open with these flags is noted; 0 when nothing is written.
inline uint32_t noted_by(int flags) noexcept {
    if ((flags & O_PATH) != 0 || (flags & O_TMPFILE) == O_TMPFILE || (flags & O_DIRECTORY) != 0) return 0;
    if ((flags & O_ACCMODE) == O_RDONLY && (flags & O_TRUNC) == 0) return 0;
    if ((flags & O_APPEND) == 0) return split::kNotedWritten;
    return split::kNotedAppended | split::kNotedLastAppended |
           ((flags & O_TRUNC) != 0 ? split::kNotedWritten : 0u);
}
// The same of fopen's mode.
inline uint32_t noted_by(const char* mode) noexcept {
    bool plus = false;
    for (const char* at = mode; *at != 0 && *at != ','; ++at) plus = plus || *at == '+';
    if (*mode == 'a') return split::kNotedAppended | split::kNotedLastAppended;
    return *mode == 'w' || plus ? split::kNotedWritten : 0u;
}

// Notes a file around the call that names it: before, as the program may be stopped right after; what has not
// succeeded does not count.
class Noting {
  public:
    Noting(int directory, const char* path, uint32_t how) noexcept
        : directory_(directory), path_(path), how_(path != nullptr ? how : 0) {
        if (how_ != 0) note_file(directory_, path_, split::kNotedTried);
    }
    int opened(int fd) noexcept {
        if (how_ != 0 && fd >= 0) note_descriptor(fd, how_);
        return done(fd, fd >= 0);
    }
    FILE* opened(FILE* file) noexcept {
        if (how_ != 0 && file != nullptr) note_descriptor(fileno(file), how_);
        return done(file, file != nullptr);
    }
    template <class Result>
    Result done(Result result, bool good) noexcept {
        if (how_ != 0 && good) note_file(directory_, path_, how_);
        return result;
    }

  private:
    int directory_;
    const char* path_;
    uint32_t how_;
};

}  // namespace fermata::front::posix
