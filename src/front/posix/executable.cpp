// /proc/self/exe names the application, not the lower half's program that the kernel started. A file that is
// opened for writing is noted (noted.h). Numbers of processes in /proc are the kernel's of this life
// (proc_path.h).
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
#include "front/posix/proc_path.h"
#include "front/posix/told_open.h"

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
        if (end == at || *end != '/' || (pid != real_pid() && real_id(static_cast<int>(pid)) != real_pid()))
            return false;
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

// A link of /proc may lead to what is called after a process: itself, or an open file of one.
ssize_t shown_link(ssize_t length, const char* path, char* buffer, size_t size) {
    if (length < 0 || !ids_changed() || strncmp(path, "/proc/", 6) != 0) return length;
    char text[PATH_MAX], shown[PATH_MAX + 33];
    if (static_cast<size_t>(length) == size) {  // cut off, perhaps
        length = next_readlink(path, text, sizeof text);
        if (length < 0) return length;
    } else {
        memcpy(text, buffer, static_cast<size_t>(length));
    }
    shown[show_numbers(text, static_cast<size_t>(length), shown)] = 0;
    return answer(shown, buffer, size);
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

using namespace fermata::front;
using namespace fermata::front::posix;

FERMATA_INTERPOSE ssize_t readlink(const char* path, char* buffer, size_t size) noexcept {
    ProcPath here(path);
    const char* target = instead_of(here.get());
    if (target != here.get()) return answer(target, buffer, size);
    return shown_link(next_readlink(target, buffer, size), target, buffer, size);
}
FERMATA_INTERPOSE ssize_t readlinkat(int directory, const char* path, char* buffer, size_t size) noexcept {
    ProcPath here(path);
    const char* target = instead_of(here.get());
    if (target != here.get()) return answer(target, buffer, size);
    return shown_link(next_readlinkat(directory, target, buffer, size), target, buffer, size);
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
    ProcPath here(path);
    const char* target = instead_of(here.get());
    if (!ids_changed() || target == nullptr || strncmp(target, "/proc/", 6) != 0)
        return next_realpath(target, resolved);
    char real[PATH_MAX], shown[PATH_MAX + 32];
    if (next_realpath(target, real) == nullptr) return nullptr;
    const size_t length = show_numbers(real, strlen(real), shown);
    shown[length] = 0;
    if (resolved == nullptr) return strdup(shown);
    if (length >= PATH_MAX) {
        errno = ENAMETOOLONG;
        return nullptr;
    }
    return strcpy(resolved, shown);
}
FERMATA_INTERPOSE char* __realpath_chk(const char* path, char* resolved, size_t room) {
    if (room < PATH_MAX) abort();
    return realpath(path, resolved);
}
FERMATA_INTERPOSE char* canonicalize_file_name(const char* path) noexcept { return realpath(path, nullptr); }

// The call with the path `file` and the flags `now`.
#define FERMATA_OPEN(name, parameters, directory, ...)                                                 \
    FERMATA_INTERPOSE int name parameters {                                                            \
        va_list list;                                                                                  \
        va_start(list, flags);                                                                         \
        mode_t mode = mode_of(flags, list);                                                            \
        va_end(list);                                                                                  \
        Noting noting(directory, path, noted_by(flags));                                               \
        ProcPath here(path);                                                                           \
        const auto call = [&](const char* file, bool shadow) {                                         \
            const int now = shadow ? for_shadow(flags) : flags;                                        \
            return next_##name(__VA_ARGS__);                                                           \
        };                                                                                             \
        return noting.opened(told_open<int>(directory, instead_of(here.get()), wish_of(flags), call)); \
    }
FERMATA_OPEN(open, (const char* path, int flags, ...), AT_FDCWD, file, now, mode)
FERMATA_OPEN(open64, (const char* path, int flags, ...), AT_FDCWD, file, now, mode)
FERMATA_OPEN(openat, (int directory, const char* path, int flags, ...), directory, directory, file, now, mode)
FERMATA_OPEN(openat64, (int directory, const char* path, int flags, ...), directory, directory, file, now,
             mode)
FERMATA_INTERPOSE int __open_2(const char* path, int flags) { return open(path, flags); }
FERMATA_INTERPOSE int __open64_2(const char* path, int flags) { return open64(path, flags); }

#define FERMATA_FOPEN(name)                                                                            \
    FERMATA_INTERPOSE FILE* name(const char* path, const char* mode) {                                 \
        Noting noting(AT_FDCWD, path, noted_by(mode));                                                 \
        ProcPath here(path);                                                                           \
        const auto call = [&](const char* file, bool shadow) {                                         \
            return next_##name(file, shadow ? for_shadow(mode) : mode);                                \
        };                                                                                             \
        return noting.opened(told_open<FILE*>(AT_FDCWD, instead_of(here.get()), wish_of(mode), call)); \
    }
FERMATA_FOPEN(fopen)
FERMATA_FOPEN(fopen64)
