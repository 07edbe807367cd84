#include "front/posix/told_files.h"

#include <limits.h>
#include <stddef.h>
#include <unistd.h>

#include "front/core/front.h"
#include "front/core/line.h"
#include "front/posix/next.h"
#include "front/posix/noted.h"
#include "front/posix/private_files.h"

namespace fermata::front::posix {
namespace {

namespace raw = split::raw;

Next<int(const char*, mode_t)> next_mkdir{"mkdir"};
Next<int(int, const char*, mode_t)> next_mkdirat{"mkdirat"};
Next<int(const char*)> next_rmdir{"rmdir"};
Next<int(int, off_t)> next_ftruncate{"ftruncate"};
Next<int(int, off64_t)> next_ftruncate64{"ftruncate64"};

[[noreturn]] void end_copy(const char* why, const char* path) noexcept {
    char text[PATH_MAX + 80];
    Line(text, sizeof text) << "its copy ends, since its program " << why
                            << (path != nullptr ? path : "a file") << ": the rank goes on without one";
    bridge()->end_copy(text);
    __builtin_unreachable();
}

}  // namespace

Opened opened(int descriptor) noexcept {
    struct stat what;
    if (descriptor < 0) return {.error = errno};
    if (raw::call(SYS_fstat, descriptor, raw::word(&what)) != 0) return {};
    return {.error = 0,
            .regular = S_ISREG(what.st_mode) ? 1u : 0u,
            .device = what.st_dev,
            .inode = what.st_ino,
            .size = what.st_size,
            .changed = what.st_mtim.tv_sec * 1000000000 + what.st_mtim.tv_nsec};
}

bool is_own(const char* path) noexcept { return is_of_the_kernel(path); }

bool changes_by_itself(const char* path, Wish wish) noexcept {
    if (__builtin_strncmp(path, "/proc/", 6) != 0 || wish == Wish::write) return false;
    struct stat what;
    return wish == Wish::read ||
           (raw::call(SYS_newfstatat, AT_FDCWD, raw::word(path), raw::word(&what), 0) == 0 &&
            (what.st_mode & (S_IWUSR | S_IWGRP | S_IWOTH)) == 0);
}

namespace {

// A file of /proc, whole. One thread alone is told, so that one of these is enough.
struct OfProc {
    static constexpr long kMost = 64 << 10;  // longer files each process reads for itself
    int error;
    int size;  // -1: longer
    char bytes[kMost];
} of_proc;

void read_of_proc(const char* path) noexcept {
    of_proc.error = of_proc.size = 0;
    const long file = raw::call(SYS_openat, AT_FDCWD, raw::word(path), O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        of_proc.error = static_cast<int>(-file);
        return;
    }
    long size = 0, more = 0;
    while (size < OfProc::kMost &&
           (more = raw::call(SYS_read, file, raw::word(of_proc.bytes + size), OfProc::kMost - size)) > 0)
        size += more;
    raw::call(SYS_close, file);
    of_proc.size = more == 0 ? static_cast<int>(size) : -1;
}

}  // namespace

Snapshot::Snapshot(const char* path) noexcept {
    size_t size = sizeof of_proc;
    recorded_up_to("a file of /proc", &of_proc, &size, [&] {
        read_of_proc(path);
        size = offsetof(OfProc, bytes) + static_cast<size_t>(of_proc.size > 0 ? of_proc.size : 0);
    });
    error_ = of_proc.error;
    if (of_proc.error != 0 || of_proc.size < 0) return;
    const long made = raw::call(SYS_memfd_create, raw::word("proc"), 1 /* MFD_CLOEXEC */);
    if (made < 0) return;
    raw::call(SYS_write, made, raw::word(of_proc.bytes), of_proc.size);
    // The program's own number is the lowest that is free.
    const long aside = raw::call(SYS_fcntl, made, F_DUPFD_CLOEXEC, 256);
    descriptor_ = static_cast<int>(aside >= 0 ? aside : made);
    if (aside >= 0) raw::call(SYS_close, made);
    Line(text_, sizeof text_) << "/proc/self/fd/" << descriptor_;
}
Snapshot::~Snapshot() {
    if (descriptor_ >= 0) raw::call(SYS_close, descriptor_);
}

void no_copy_may(const char* path) noexcept {
    if (__builtin_expect(front.follows, 0) != 0 && (path == nullptr || !is_own(path)))
        end_copy("changes ", path);
}

ShadowPath shadow_of(int directory, const char* path, int64_t size) noexcept {
    long real = raw::call(SYS_openat, directory, raw::word(path), O_WRONLY | O_CLOEXEC);
    if (real == -ENOENT) real = -1;  // the rank has given it another name since, or none
    if (real < -1) end_copy("writes ", path);
    const int shadow = bridge()->shadow(static_cast<int>(real), size);
    if (shadow < 0) end_copy("writes ", path);
    ShadowPath made;
    Line(made.text, sizeof made.text) << "/proc/self/fd/" << shadow;
    return made;
}

void must_be_same(int descriptor, const Opened& was, const char* path) noexcept {
    for (const split::PrivateFile& one : private_files()->files)
        if (was.regular != 0 && one.data_inode != 0 && one.device == was.device && one.inode == was.inode)
            end_copy("reads a file by one descriptor and writes it by another, ", path);
    if (descriptor < 0 || (was.regular != 0 && opened(descriptor) != was))
        end_copy("reads a file that has changed meanwhile, ", path);
}

}  // namespace fermata::front::posix

using namespace fermata::front::posix;

FERMATA_INTERPOSE int mkdir(const char* path, mode_t mode) noexcept {
    return told_change(path, [&] { return next_mkdir(path, mode); });
}
FERMATA_INTERPOSE int mkdirat(int directory, const char* path, mode_t mode) noexcept {
    return told_change(path, [&] { return next_mkdirat(directory, path, mode); });
}
FERMATA_INTERPOSE int rmdir(const char* path) noexcept {
    return told_change(path, [&] { return next_rmdir(path); });
}
// Other shadows that were cut say nothing of their file.
FERMATA_INTERPOSE int ftruncate(int fd, off_t size) noexcept {
    if (!is_private(fd)) no_copy_may(nullptr);
    return next_ftruncate(fd, size);
}
FERMATA_INTERPOSE int ftruncate64(int fd, off64_t size) noexcept {
    if (!is_private(fd)) no_copy_may(nullptr);
    return next_ftruncate64(fd, size);
}
