// Functions of the lower executable that make descriptors: as libc's, then the number is moved up.
//
// An object file of the executable itself (see alloc/interpose.cpp). The close-on-exec flag is set on what is
// moved: nothing of the lower half is meant for the application's children.
#include <dirent.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "split/address/raw.h"
#include "split/fds/connections.h"
#include "split/fds/descriptors.h"

using namespace fermata::split;

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

int answer(long result) {
    if (!failed(result)) {
        const int fd = raise_descriptor(int(result));
        is_new(fd);
        return fd;
    }
    errno = int(-result);
    return -1;
}

int answer_pair(long result, int pair[2]) {
    if (failed(result)) {
        errno = int(-result);
        return -1;
    }
    pair[0] = raise_descriptor(pair[0]);
    pair[1] = raise_descriptor(pair[1]);
    return 0;
}

bool takes_mode(int flags) { return (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE; }

// fopen's mode as open's flags; -1 when it is none.
int flags_of(const char* mode) {
    int flags;
    switch (*mode) {
        case 'r':
            flags = O_RDONLY;
            break;
        case 'w':
            flags = O_WRONLY | O_CREAT | O_TRUNC;
            break;
        case 'a':
            flags = O_WRONLY | O_CREAT | O_APPEND;
            break;
        default:
            errno = EINVAL;
            return -1;
    }
    for (++mode; *mode && *mode != ','; ++mode) {
        if (*mode == '+') flags = (flags & ~O_ACCMODE) | O_RDWR;
        if (*mode == 'e') flags |= O_CLOEXEC;
        if (*mode == 'x') flags |= O_EXCL;
    }
    return flags;
}

}  // namespace

#define MODE(flags)                  \
    mode_t mode = 0;                 \
    if (takes_mode(flags)) {         \
        va_list list;                \
        va_start(list, flags);       \
        mode = va_arg(list, mode_t); \
        va_end(list);                \
    }

EXPORT int open(const char* path, int flags, ...) {
    MODE(flags)
    return answer(sys(SYS_openat, AT_FDCWD, path, flags, mode));
}
EXPORT int open64(const char* path, int flags, ...) {
    MODE(flags)
    return answer(sys(SYS_openat, AT_FDCWD, path, flags, mode));
}
EXPORT int openat(int at, const char* path, int flags, ...) {
    MODE(flags)
    return answer(sys(SYS_openat, at, path, flags, mode));
}
EXPORT int openat64(int at, const char* path, int flags, ...) {
    MODE(flags)
    return answer(sys(SYS_openat, at, path, flags, mode));
}
// -D_FORTIFY_SOURCE turns the calls above into these.
EXPORT int __open_2(const char* path, int flags) { return answer(sys(SYS_openat, AT_FDCWD, path, flags)); }
EXPORT int __open64_2(const char* path, int flags) { return answer(sys(SYS_openat, AT_FDCWD, path, flags)); }
EXPORT int __openat_2(int at, const char* path, int flags) {
    return answer(sys(SYS_openat, at, path, flags));
}
EXPORT int __openat64_2(int at, const char* path, int flags) {
    return answer(sys(SYS_openat, at, path, flags));
}
EXPORT int creat(const char* path, mode_t mode) { return answer(sys(SYS_creat, path, mode)); }
EXPORT int creat64(const char* path, mode_t mode) { return answer(sys(SYS_creat, path, mode)); }

EXPORT int socket(int domain, int type, int protocol) noexcept {
    return answer(sys(SYS_socket, domain, type, protocol));
}
EXPORT int socketpair(int domain, int type, int protocol, int pair[2]) noexcept {
    return answer_pair(sys(SYS_socketpair, domain, type, protocol, pair), pair);
}
EXPORT int accept(int fd, sockaddr* address, socklen_t* size) {
    return answer(sys(SYS_accept, fd, address, size));
}
EXPORT int accept4(int fd, sockaddr* address, socklen_t* size, int flags) {
    return answer(sys(SYS_accept4, fd, address, size, flags));
}
EXPORT int pipe(int pair[2]) noexcept { return answer_pair(sys(SYS_pipe2, pair, 0), pair); }
EXPORT int pipe2(int pair[2], int flags) noexcept { return answer_pair(sys(SYS_pipe2, pair, flags), pair); }
EXPORT int dup(int fd) noexcept { return answer(sys(SYS_dup, fd)); }

EXPORT int fcntl64(int fd, int command, ...) {
    va_list list;
    va_start(list, command);
    long argument = va_arg(list, long);
    va_end(list);
    long result = sys(SYS_fcntl, fd, command, argument);
    if (command == F_DUPFD || command == F_DUPFD_CLOEXEC) return answer(result);
    if (!failed(result)) return int(result);
    errno = int(-result);
    return -1;
}
EXPORT int fcntl(int fd, int command, ...) __attribute__((alias("fcntl64")));

EXPORT int eventfd(unsigned value, int flags) noexcept { return answer(sys(SYS_eventfd2, value, flags)); }
EXPORT int epoll_create(int size) noexcept {
    if (size <= 0) return answer(-EINVAL);
    return answer(sys(SYS_epoll_create1, 0));
}
EXPORT int epoll_create1(int flags) noexcept { return answer(sys(SYS_epoll_create1, flags)); }
EXPORT int timerfd_create(int clock, int flags) noexcept {
    return answer(sys(SYS_timerfd_create, clock, flags));
}
EXPORT int signalfd(int fd, const sigset_t* mask, int flags) noexcept {
    long result = sys(SYS_signalfd4, fd, mask, 8, flags);
    return fd >= 0 && !failed(result) ? int(result) : answer(result);
}
EXPORT int memfd_create(const char* name, unsigned flags) noexcept {
    return answer(sys(SYS_memfd_create, name, flags));
}
EXPORT int inotify_init() noexcept { return answer(sys(SYS_inotify_init1, 0)); }
EXPORT int inotify_init1(int flags) noexcept { return answer(sys(SYS_inotify_init1, flags)); }

// libc's own would call its hidden open.
EXPORT int shm_open(const char* name, int flags, mode_t mode) {
    char path[300] = "/dev/shm/";
    while (*name == '/') ++name;
    size_t length = std::strlen(name);
    if (!length || std::strchr(name, '/') || length > 255) return answer(-EINVAL);
    std::memcpy(path + 9, name, length + 1);
    return answer(sys(SYS_openat, AT_FDCWD, path, flags | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, mode));
}
EXPORT FILE* fopen(const char* path, const char* mode) {
    int flags = flags_of(mode);
    if (flags == -1) return nullptr;
    int fd = open(path, flags, 0666);
    if (fd < 0) return nullptr;
    FILE* file = fdopen(fd, mode);
    if (!file) sys(SYS_close, fd);
    return file;
}
EXPORT FILE* fopen64(const char* path, const char* mode) { return fopen(path, mode); }
EXPORT DIR* opendir(const char* path) {
    int fd = open(path, O_RDONLY | O_NDELAY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return nullptr;
    DIR* dir = fdopendir(fd);
    if (!dir) sys(SYS_close, fd);
    return dir;
}
