// The calls that open files for writing or give them names. The calls themselves do what libc's do; see
// noted.h. open and fopen stand in executable.cpp, which has to look at their paths as well.
#include "front/posix/noted.h"

#include <limits.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "front/core/front.h"
#include "front/core/line.h"
#include "front/posix/next.h"
#include "front/posix/private_files.h"
#include "front/posix/told_files.h"

namespace fermata::front::posix {
namespace {

namespace raw = split::raw;
using split::NotedFile;
using split::NotedFiles;

Next<FILE*(const char*, const char*, FILE*)> next_freopen{"freopen"};
Next<FILE*(const char*, const char*, FILE*)> next_freopen64{"freopen64"};
Next<int(const char*, const char*)> next_rename{"rename"};
Next<int(int, const char*, int, const char*)> next_renameat{"renameat"};
Next<int(int, const char*, int, const char*, unsigned)> next_renameat2{"renameat2"};
Next<int(const char*, const char*)> next_link{"link"};
Next<int(int, const char*, int, const char*, int)> next_linkat{"linkat"};
Next<int(const char*, const char*)> next_symlink{"symlink"};
Next<int(const char*, int, const char*)> next_symlinkat{"symlinkat"};
Next<int(const char*)> next_unlink{"unlink"};
Next<int(int, const char*, int)> next_unlinkat{"unlinkat"};
Next<int(const char*)> next_remove{"remove"};
Next<int(const char*, off_t)> next_truncate{"truncate"};
Next<int(const char*, off_t)> next_truncate64{"truncate64"};
Next<int(char*)> next_mkstemp{"mkstemp"};
Next<int(char*)> next_mkstemp64{"mkstemp64"};
Next<int(char*, int)> next_mkostemp{"mkostemp"};
Next<int(char*, int)> next_mkostemp64{"mkostemp64"};
Next<int(char*, int)> next_mkstemps{"mkstemps"};
Next<int(char*, int)> next_mkstemps64{"mkstemps64"};
Next<int(char*, int, int)> next_mkostemps{"mkostemps"};
Next<int(char*, int, int)> next_mkostemps64{"mkostemps64"};

// Signals are blocked while it is held, the stop signal too: nobody is captured within who is not traced for
// it (split/threads/masked.h), and nobody at all while entries move.
std::atomic<uint32_t> g_lock;
class Locked {
  public:
    Locked() noexcept : mask_(raw::set_signal_mask(raw::kAllSignals)) {
        while (g_lock.exchange(1, std::memory_order_acquire) != 0) raw::call(SYS_sched_yield);
    }
    ~Locked() {
        g_lock.store(0, std::memory_order_release);
        raw::set_signal_mask(mask_);
    }

  private:
    raw::SignalSet mask_;
};

}  // namespace

bool is_of_the_kernel(const char* path) noexcept {
    bool device = strncmp(path, "/dev/", 5) == 0 && strncmp(path, "/dev/shm/", 9) != 0;
    return device || strncmp(path, "/proc/", 6) == 0 || strncmp(path, "/sys/", 5) == 0;
}

namespace {

// Writes the kernel's name of an open descriptor; returns the length, without a final 0.
long name_of(int fd, char (&out)[PATH_MAX]) noexcept {
    char link[40];
    Line(link, sizeof link) << "/proc/self/fd/" << fd;
    return raw::call(SYS_readlink, raw::word(link), raw::word(out), sizeof out - 1);
}

// `path` from the root; false when that cannot be known.
bool make_absolute(int directory, const char* path, char (&out)[PATH_MAX]) noexcept {
    size_t length = strlen(path);
    if (length == 0) return false;
    size_t at = 0;
    if (path[0] != '/') {
        long size;
        if (directory == AT_FDCWD) {
            size = raw::call(SYS_getcwd, raw::word(out), sizeof out) - 1;  // it counts the final 0
        } else {
            size = name_of(directory, out);
        }
        if (size <= 0 || out[0] != '/') return false;
        at = static_cast<size_t>(size);
        if (out[at - 1] != '/') out[at++] = '/';
    }
    if (at + length >= sizeof out) return false;
    memcpy(out + at, path, length + 1);
    return true;
}

NotedFiles* table() noexcept { return __atomic_load_n(&fermata_upper.noted_files, __ATOMIC_ACQUIRE); }

// Null when it is not there; `slot` is where it would be.
NotedFile* find(NotedFiles* files, const char* path, uint64_t hash, uint32_t& slot) noexcept {
    for (slot = static_cast<uint32_t>(hash) % NotedFiles::kSlots;; slot = (slot + 1) % NotedFiles::kSlots) {
        uint32_t index = __atomic_load_n(&files->slot[slot], __ATOMIC_ACQUIRE);
        if (index == 0) return nullptr;
        NotedFile& one = files->file[index - 1];
        if (one.hash == hash && strcmp(files->text + one.path, path) == 0) return &one;
    }
}

void add_how(NotedFile& one, uint32_t how) noexcept {
    uint32_t now = __atomic_load_n(&one.how, __ATOMIC_RELAXED);
    uint32_t wanted = now | how;
    if (how != split::kNotedTried && (how & split::kNotedLastAppended) == 0)
        wanted &= ~split::kNotedLastAppended;
    if (wanted != now) __atomic_store_n(&one.how, wanted, __ATOMIC_RELAXED);
}

// Makes room: what is not there any more (temporary files, mostly) is noted again should it come back. For
// readers without the lock entries move.
void drop_absent(NotedFiles* files) noexcept {
    long text =
        raw::call(SYS_mmap, 0, NotedFiles::kText, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (text < 0 && text > -4096) return;
    auto* fresh = reinterpret_cast<char*>(text);
    __atomic_fetch_add(&files->changes, 1, __ATOMIC_SEQ_CST);
    memset(const_cast<uint32_t*>(files->slot), 0, sizeof files->slot);
    uint32_t kept = 0, used = 0;
    for (uint32_t i = 0; i < files->count; i++) {
        NotedFile one = files->file[i];
        const char* path = files->text + one.path;
        struct stat there;
        if (raw::call(SYS_newfstatat, AT_FDCWD, raw::word(path), raw::word(&there), AT_SYMLINK_NOFOLLOW) != 0)
            continue;
        size_t length = strlen(path) + 1;
        memcpy(fresh + used, path, length);
        one.path = used;
        used += static_cast<uint32_t>(length);
        files->file[kept].hash = one.hash;
        files->file[kept].path = one.path;
        files->file[kept].how = one.how;
        uint32_t slot = static_cast<uint32_t>(one.hash) % NotedFiles::kSlots;
        while (files->slot[slot] != 0) slot = (slot + 1) % NotedFiles::kSlots;
        files->slot[slot] = ++kept;
    }
    memcpy(files->text, fresh, used);
    files->count = kept;
    files->used = used;
    if (kept > NotedFiles::kMost / 4 * 3 || used > NotedFiles::kText / 4 * 3) files->crowded = 1;
    __atomic_fetch_add(&files->changes, 1, __ATOMIC_SEQ_CST);
    raw::call(SYS_munmap, text, NotedFiles::kText);
}

bool has_room(const NotedFiles* files, uint32_t length) noexcept {
    return files->count < NotedFiles::kMost && files->used + length < NotedFiles::kText;
}

// A fork has a copy of the table that nobody saves, and of the lock, which a thread may have held that is not
// there any more.
bool in_child() noexcept {
    const split::Bridge* bridge = fermata_upper.bridge;
    return bridge != nullptr && bridge->process != raw::getpid();
}

// `full`: from the root.
void note(const char* full, uint32_t how) noexcept {
    if (is_of_the_kernel(full) || in_child()) return;
    uint64_t hash = split::noted_hash(full);
    uint32_t slot = 0;
    NotedFiles* files = table();
    NotedFile* known = nullptr;
    if (files != nullptr) {
        uint32_t changes = __atomic_load_n(&files->changes, __ATOMIC_ACQUIRE);
        known = find(files, full, hash, slot);
        if (known != nullptr) add_how(*known, how);
        if (known != nullptr && (changes & 1) == 0 &&
            changes == __atomic_load_n(&files->changes, __ATOMIC_SEQ_CST))
            return;
    }
    Locked locked;
    files = table();
    if (files == nullptr) {
        long start = raw::call(SYS_mmap, 0, sizeof *files, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (start < 0 && start > -4096) return;  // then the program has no memory either
        raw::call(SYS_madvise, start, sizeof *files, MADV_NOHUGEPAGE);  // most of it stays empty
        files = reinterpret_cast<NotedFiles*>(start);
        __atomic_store_n(&fermata_upper.noted_files, files, __ATOMIC_RELEASE);
    }
    known = find(files, full, hash, slot);  // others may have been faster
    if (known != nullptr) return add_how(*known, how);
    auto length = static_cast<uint32_t>(strlen(full)) + 1;
    if (!has_room(files, length) && files->crowded == 0) {
        drop_absent(files);
        find(files, full, hash, slot);
    }
    if (!has_room(files, length)) {
        if (how != split::kNotedTried) files->missed = files->missed + 1;
        return;
    }
    NotedFile& fresh = files->file[files->count];
    fresh.hash = hash;
    fresh.path = files->used;
    fresh.how = how;
    memcpy(files->text + files->used, full, length);
    files->used += length;
    files->count = files->count + 1;
    __atomic_store_n(&files->slot[slot], files->count, __ATOMIC_RELEASE);
}

}  // namespace

void note_descriptor(int fd, uint32_t how) noexcept {
    if (front.follows != 0) return;  // a shadow
    char name[PATH_MAX];
    long size = name_of(fd, name);
    if (size <= 0 || name[0] != '/') return;
    name[size] = 0;
    note(name, how);
}

void note_file(int directory, const char* path, uint32_t how) noexcept {
    char full[PATH_MAX];
    if (!make_absolute(directory, path, full)) return;
    note(full, how);
}

}  // namespace fermata::front::posix

using namespace fermata::front::posix;
using fermata::split::kNotedWritten;

// Whatever makes `path` of this directory another file, or ends it.
#define FERMATA_NOTED(directory, path, call)                       \
    {                                                              \
        Noting noting((directory), (path), kNotedWritten);         \
        auto result = told_change((path), [&] { return (call); }); \
        return noting.done(result, result >= 0);                   \
    }

#define FERMATA_REMOVED(directory, path, call)                                 \
    {                                                                          \
        Noting noting((directory), (path), kNotedWritten);                     \
        auto result = told_change((path), [&] { return (call); });             \
        if (result >= 0) name_changed((directory), (path), AT_FDCWD, nullptr); \
        return noting.done(result, result >= 0);                               \
    }

FERMATA_INTERPOSE int creat(const char* path, mode_t mode) {
    return open(path, O_WRONLY | O_CREAT | O_TRUNC, mode);
}
FERMATA_INTERPOSE int creat64(const char* path, mode_t mode) {
    return open64(path, O_WRONLY | O_CREAT | O_TRUNC, mode);
}
FERMATA_INTERPOSE int link(const char* from, const char* to) noexcept
    FERMATA_NOTED(AT_FDCWD, to, next_link(from, to)) FERMATA_INTERPOSE
    int linkat(int from_at, const char* from, int to_at, const char* to, int flags) noexcept
    FERMATA_NOTED(to_at, to, next_linkat(from_at, from, to_at, to, flags)) FERMATA_INTERPOSE
    int symlink(const char* target, const char* path) noexcept
    FERMATA_NOTED(AT_FDCWD, path, next_symlink(target, path)) FERMATA_INTERPOSE
    int symlinkat(const char* target, int directory, const char* path) noexcept
    FERMATA_NOTED(directory, path, next_symlinkat(target, directory, path)) FERMATA_INTERPOSE
    int unlink(const char* path) noexcept FERMATA_REMOVED(AT_FDCWD, path, next_unlink(path)) FERMATA_INTERPOSE
    int remove(const char* path) noexcept FERMATA_REMOVED(AT_FDCWD, path, next_remove(path)) FERMATA_INTERPOSE
    int unlinkat(int directory, const char* path, int flags) noexcept
    FERMATA_REMOVED(directory, path, next_unlinkat(directory, path, flags)) FERMATA_INTERPOSE
    int truncate(const char* path, off_t size) noexcept
    FERMATA_NOTED(AT_FDCWD, path, next_truncate(path, size)) FERMATA_INTERPOSE
    int truncate64(const char* path, off_t size) noexcept
    FERMATA_NOTED(AT_FDCWD, path, next_truncate64(path, size))

        namespace {
    template <class Call>
    int noted_rename(int from_at, const char* from, int to_at, const char* to, Call call) noexcept {
        Noting gone(from_at, from, kNotedWritten);
        Noting noting(to_at, to, kNotedWritten);
        int result = told_change(to, call);
        if (result == 0) name_changed(from_at, from, to_at, to);
        return gone.done(noting.done(result, result == 0), result == 0);
    }
}  // namespace

FERMATA_INTERPOSE int rename(const char* from, const char* to) noexcept {
    return noted_rename(AT_FDCWD, from, AT_FDCWD, to, [&] { return next_rename(from, to); });
}
FERMATA_INTERPOSE int renameat(int from_at, const char* from, int to_at, const char* to) noexcept {
    return noted_rename(from_at, from, to_at, to, [&] { return next_renameat(from_at, from, to_at, to); });
}
FERMATA_INTERPOSE int renameat2(int from_at, const char* from, int to_at, const char* to,
                                unsigned flags) noexcept {
    return noted_rename(from_at, from, to_at, to,
                        [&] { return next_renameat2(from_at, from, to_at, to, flags); });
}

FERMATA_INTERPOSE FILE* freopen(const char* path, const char* mode, FILE* stream) {
    if (path == nullptr || wish_of(mode) != Wish::read) no_copy_may(path);
    Noting noting(AT_FDCWD, path, noted_by(mode));
    return noting.opened(next_freopen(path, mode, stream));
}
FERMATA_INTERPOSE FILE* freopen64(const char* path, const char* mode, FILE* stream) {
    if (path == nullptr || wish_of(mode) != Wish::read) no_copy_may(path);
    Noting noting(AT_FDCWD, path, noted_by(mode));
    return noting.opened(next_freopen64(path, mode, stream));
}

// Fortified programs call these (open and openat have theirs in executable.cpp).
FERMATA_INTERPOSE int __openat_2(int directory, const char* path, int flags) {
    return openat(directory, path, flags);
}
FERMATA_INTERPOSE int __openat64_2(int directory, const char* path, int flags) {
    return openat64(directory, path, flags);
}

// The name is known when the file is there.
#define FERMATA_TEMPORARY(flags, call)                         \
    {                                                          \
        const auto make = [&] { return (call); };              \
        const int fd = made_temporary(name, (flags), make);    \
        if (fd >= 0) note_file(AT_FDCWD, name, kNotedWritten); \
        return fd;                                             \
    }
FERMATA_INTERPOSE int mkstemp(char* name) FERMATA_TEMPORARY(0, next_mkstemp(name)) FERMATA_INTERPOSE
    int mkstemp64(char* name) FERMATA_TEMPORARY(0, next_mkstemp64(name)) FERMATA_INTERPOSE
    int mkostemp(char* name, int flags) FERMATA_TEMPORARY(flags, next_mkostemp(name, flags)) FERMATA_INTERPOSE
    int mkostemp64(char* name, int flags)
        FERMATA_TEMPORARY(flags, next_mkostemp64(name, flags)) FERMATA_INTERPOSE
    int mkstemps(char* name, int end) FERMATA_TEMPORARY(0, next_mkstemps(name, end)) FERMATA_INTERPOSE
    int mkstemps64(char* name, int end) FERMATA_TEMPORARY(0, next_mkstemps64(name, end)) FERMATA_INTERPOSE
    int mkostemps(char* name, int end, int flags)
        FERMATA_TEMPORARY(flags, next_mkostemps(name, end, flags)) FERMATA_INTERPOSE
    int mkostemps64(char* name, int end, int flags)
        FERMATA_TEMPORARY(flags, next_mkostemps64(name, end, flags))
