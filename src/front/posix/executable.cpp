// /proc/self/exe names the application, not the lower half's program that the kernel started. What is opened
// for writing is noted (noted.h).
#include "front/posix/executable.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "front/posix/next.h"
#include "front/posix/noted.h"

namespace fermata::front::posix {
namespace {

Next<ssize_t(const char*, char*, size_t)> next_readlink{"readlink"};
Next<ssize_t(int, const char*, char*, size_t)> next_readlinkat{"readlinkat"};
Next<char*(const char*, char*)> next_realpath{"realpath"};
Next<int(const char*, int, mode_t)> next_open{"open"};
Next<int(const char*, int, mode_t)> next_open64{"open64"};
Next<int(int, const char*, int, mode_t)> next_openat{"openat"};
Next<int(int, const char*, int, mode_t)> next_openat64{"openat64"};
Next<FILE*(const char*, const char*)> next_fopen{"fopen"};
Next<FILE*(const char*, const char*)> next_fopen64{"fopen64"};

// /proc/{self,thread-self,PID}/exe, /proc/self/task/TID/exe of this process. Costs four compared bytes for
// other paths.
bool names_executable(const char* path) {
    if (path == nullptr || strncmp(path, "/proc/", 6) != 0) return false;
    const char* at = path + 6;
    if (strncmp(at, "self/", 5) == 0)
        at += 5;
    else if (strncmp(at, "thread-self/", 12) == 0)
        at += 12;
    else {
        char* end = nullptr;
        long pid = strtol(at, &end, 10);
        if (end == at || *end != '/' || pid != getpid()) return false;
        at = end + 1;
    }
    if (strncmp(at, "task/", 5) == 0) {
        at = strchr(at + 5, '/');
        if (at == nullptr) return false;
        ++at;
    }
    return strcmp(at, "exe") == 0;
}

ssize_t answer(const char* target, char* buffer, size_t size) {
    if (size == 0) {
        errno = EINVAL;
        return -1;
    }
    size_t length = strlen(target);
    if (length > size) length = size;  // readlink truncates without a word
    memcpy(buffer, target, length);  // NOLINT(bugprone-not-null-terminated-result): readlink ends in no zero
    return static_cast<ssize_t>(length);
}

mode_t mode_of(int flags, va_list& list) {
    return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(list, mode_t) : 0;
}

}  // namespace

const char* instead_of(const char* path) {
    if (__builtin_expect(names_executable(path), 0) && bridge() != nullptr && bridge()->program != nullptr)
        return bridge()->program;
    return path;
}

}  // namespace fermata::front::posix

using namespace fermata::front::posix;

FERMATA_INTERPOSE ssize_t readlink(const char* path, char* buffer, size_t size) noexcept {
    const char* target = instead_of(path);
    return target == path ? next_readlink(path, buffer, size) : answer(target, buffer, size);
}
FERMATA_INTERPOSE ssize_t readlinkat(int directory, const char* path, char* buffer, size_t size) noexcept {
    const char* target = instead_of(path);
    return target == path ? next_readlinkat(directory, path, buffer, size) : answer(target, buffer, size);
}
FERMATA_INTERPOSE ssize_t __readlink_chk(const char* path, char* buffer, size_t size, size_t room) {
    if (size > room) abort();
    return readlink(path, buffer, size);
}
FERMATA_INTERPOSE ssize_t __readlinkat_chk(int directory, const char* path, char* buffer, size_t size,
                                           size_t room) {
    if (size > room) abort();
    return readlinkat(directory, path, buffer, size);
}
FERMATA_INTERPOSE char* realpath(const char* path, char* resolved) noexcept {
    return next_realpath(instead_of(path), resolved);
}
FERMATA_INTERPOSE char* __realpath_chk(const char* path, char* resolved, size_t room) {
    if (room < PATH_MAX) abort();
    return realpath(path, resolved);
}
FERMATA_INTERPOSE char* canonicalize_file_name(const char* path) noexcept { return realpath(path, nullptr); }

#define FERMATA_OPEN(name)                                         \
    FERMATA_INTERPOSE int name(const char* path, int flags, ...) { \
        va_list list;                                              \
        va_start(list, flags);                                     \
        mode_t mode = mode_of(flags, list);                        \
        va_end(list);                                              \
        Noting noting(AT_FDCWD, path, noted_by(flags));            \
        int fd = next_##name(instead_of(path), flags, mode);       \
        return noting.opened(fd);                                  \
    }
#define FERMATA_OPENAT(name)                                                      \
    FERMATA_INTERPOSE int name(int directory, const char* path, int flags, ...) { \
        va_list list;                                                             \
        va_start(list, flags);                                                    \
        mode_t mode = mode_of(flags, list);                                       \
        va_end(list);                                                             \
        Noting noting(directory, path, noted_by(flags));                          \
        int fd = next_##name(directory, instead_of(path), flags, mode);           \
        return noting.opened(fd);                                                 \
    }
FERMATA_OPEN(open)
FERMATA_OPEN(open64)
FERMATA_OPENAT(openat)
FERMATA_OPENAT(openat64)
FERMATA_INTERPOSE int __open_2(const char* path, int flags) { return open(path, flags); }
FERMATA_INTERPOSE int __open64_2(const char* path, int flags) { return open64(path, flags); }

FERMATA_INTERPOSE FILE* fopen(const char* path, const char* mode) {
    Noting noting(AT_FDCWD, path, noted_by(mode));
    return noting.opened(next_fopen(instead_of(path), mode));
}
FERMATA_INTERPOSE FILE* fopen64(const char* path, const char* mode) {
    Noting noting(AT_FDCWD, path, noted_by(mode));
    return noting.opened(next_fopen64(instead_of(path), mode));
}
