// Files of processes and threads, looked for by name: /proc/PID and what is in it, and the names in
// /proc/PID/task.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "front/core/ids.h"
#include "front/posix/next.h"
#include "front/posix/proc_path.h"
#include "front/posix/told_files.h"

namespace fermata::front::identity {
namespace {

using posix::Next;
using posix::ProcPath;

Next<DIR*(const char*)> next_opendir{"opendir"};
Next<dirent*(DIR*)> next_readdir{"readdir"};

__attribute__((constructor)) void find_all() {
    next_opendir.find();
    next_readdir.find();
}

bool is_number(const char* name) {
    return *name >= '1' && *name <= '9' && strspn(name, "0123456789") == strlen(name);
}

bool is_proc(DIR* folder) {
    struct statfs of {};
    return fstatfs(dirfd(folder), &of) == 0 && of.f_type == PROC_SUPER_MAGIC;
}

// An entry is valid until the next one of its folder: only who reads so many at once meets another's.
dirent* entry_with_room() {
    static dirent entries[64];  // so many threads may read /proc at once
    static unsigned next;
    return &entries[__atomic_fetch_add(&next, 1, __ATOMIC_RELAXED) % 64];
}

dirent* shown_entry(DIR* folder, dirent* entry) {
    if (entry == nullptr || !ids_changed() || !is_number(entry->d_name)) return entry;
    const int kept = errno;
    const int real = atoi(entry->d_name);
    const int shown = shown_id(real);
    if (shown != real && is_proc(folder)) {
        dirent* copy = entry_with_room();
        memcpy(copy, entry, offsetof(dirent, d_name));
        copy->d_reclen = sizeof *copy;
        snprintf(copy->d_name, sizeof copy->d_name, "%d", shown);
        entry = copy;
    }
    errno = kept;
    return entry;
}

using Filter = int (*)(const dirent*);
using Compare = int (*)(const dirent**, const dirent**);
Next<int(const char*, dirent***, Filter, Compare)> next_scandir{"scandir"};
__attribute__((constructor)) void find_scandir() { next_scandir.find(); }

// A scandir's answer as it grows, in memory that the program gives back by free().
struct Listed {
    dirent** all = nullptr;
    size_t count = 0, room = 0;

    bool add(const dirent* entry) {
        if (count == room) {
            const size_t more = room == 0 ? 16 : 2 * room;
            auto** larger = static_cast<dirent**>(realloc(all, more * sizeof *all));
            if (larger == nullptr) return false;
            all = larger;
            room = more;
        }
        auto* copy = static_cast<dirent*>(malloc(entry->d_reclen));
        if (copy == nullptr) return false;
        memcpy(copy, entry, entry->d_reclen);
        all[count++] = copy;
        return true;
    }
    void free_all() {
        while (count > 0) free(all[--count]);
        free(all);
    }
};

bool names_processes(const char* path) {
    return path != nullptr && strncmp(path, "/proc", 5) == 0 && (path[5] == '/' || path[5] == 0);
}

// libc's reads the directory itself, and lists the kernel's numbers: one of them may be what another process
// is called here.
int shown_scandir(const char* path, dirent*** list, Filter filter, Compare compare) {
    DIR* folder = opendir(path);
    if (folder == nullptr) return -1;
    const int kept = errno;
    Listed listed;
    errno = 0;
    while (const dirent* entry = readdir(folder)) {
        const bool wanted = filter == nullptr || filter(entry) != 0;
        errno = 0;  // the filter's
        if (wanted && !listed.add(entry)) break;
    }
    if (const int failed = errno; failed != 0) {
        listed.free_all();
        closedir(folder);
        errno = failed;
        return -1;
    }
    closedir(folder);
    if (compare != nullptr && listed.count > 1)
        qsort(listed.all, listed.count, sizeof *listed.all,
              reinterpret_cast<int (*)(const void*, const void*)>(compare));
    *list = listed.all;
    errno = kept;
    return static_cast<int>(listed.count);
}

}  // namespace
}  // namespace fermata::front::identity

using namespace fermata::front::identity;

FERMATA_INTERPOSE DIR* opendir(const char* path) { return next_opendir(ProcPath(path).get()); }
FERMATA_INTERPOSE dirent* readdir(DIR* folder) { return shown_entry(folder, next_readdir(folder)); }
static_assert(sizeof(dirent) == sizeof(dirent64));
FERMATA_INTERPOSE dirent64* readdir64(DIR* folder) { return reinterpret_cast<dirent64*>(readdir(folder)); }

FERMATA_INTERPOSE int scandir(const char* path, dirent*** list, Filter filter, Compare compare) {
    if (!fermata::front::ids_changed() || !names_processes(path))
        return next_scandir(path, list, filter, compare);
    return shown_scandir(path, list, filter, compare);
}
FERMATA_INTERPOSE int scandir64(const char* path, dirent64*** list, int (*filter)(const dirent64*),
                                int (*compare)(const dirent64**, const dirent64**)) {
    return scandir(path, reinterpret_cast<dirent***>(list), reinterpret_cast<Filter>(filter),
                   reinterpret_cast<Compare>(compare));
}

#define FERMATA_NEXT(result, name, parameters)                              \
    namespace fermata::front::identity {                                    \
    namespace {                                                             \
    Next<result parameters> next_##name{#name};                             \
    __attribute__((constructor)) void find_##name() { next_##name.find(); } \
    }                                                                       \
    }
// Functions of libc that take a path, and what comes behind it.
#define FERMATA_PATH(result, name, parameters, ...)     \
    FERMATA_NEXT(result, name, parameters)              \
    FERMATA_INTERPOSE result name parameters noexcept { \
        ProcPath here(path);                            \
        return next_##name(__VA_ARGS__);                \
    }
// Those that only look: a copy is told what its rank has seen.
#define FERMATA_LOOK(name, parameters, answer, size, ...)                                  \
    FERMATA_NEXT(int, name, parameters)                                                    \
    FERMATA_INTERPOSE int name parameters noexcept {                                       \
        ProcPath here(path);                                                               \
        return fermata::front::posix::told_look(here.get(), answer, size,                  \
                                                [&] { return next_##name(__VA_ARGS__); }); \
    }
FERMATA_LOOK(access, (const char* path, int mode), nullptr, 0, here.get(), mode)
FERMATA_LOOK(eaccess, (const char* path, int mode), nullptr, 0, here.get(), mode)
FERMATA_LOOK(euidaccess, (const char* path, int mode), nullptr, 0, here.get(), mode)
FERMATA_LOOK(faccessat, (int folder, const char* path, int mode, int flags), nullptr, 0, folder, here.get(),
             mode, flags)
FERMATA_LOOK(stat, (const char* path, struct stat* to), to, sizeof *to, here.get(), to)
FERMATA_LOOK(stat64, (const char* path, struct stat64* to), to, sizeof *to, here.get(), to)
FERMATA_LOOK(lstat, (const char* path, struct stat* to), to, sizeof *to, here.get(), to)
FERMATA_LOOK(lstat64, (const char* path, struct stat64* to), to, sizeof *to, here.get(), to)
FERMATA_LOOK(fstatat, (int folder, const char* path, struct stat* to, int flags), to, sizeof *to, folder,
             here.get(), to, flags)
FERMATA_LOOK(fstatat64, (int folder, const char* path, struct stat64* to, int flags), to, sizeof *to, folder,
             here.get(), to, flags)
FERMATA_LOOK(statx, (int folder, const char* path, int flags, unsigned mask, struct statx* to), to,
             sizeof *to, folder, here.get(), flags, mask, to)
FERMATA_PATH(int, chdir, (const char* path), here.get())
// The names by which programs call stat() that were linked before glibc 2.33.
extern "C" {
int __xstat(int, const char*, struct stat*) noexcept;
int __xstat64(int, const char*, struct stat64*) noexcept;
int __lxstat(int, const char*, struct stat*) noexcept;
int __lxstat64(int, const char*, struct stat64*) noexcept;
}
FERMATA_LOOK(__xstat, (int version, const char* path, struct stat* to), to, sizeof *to, version, here.get(),
             to)
FERMATA_LOOK(__xstat64, (int version, const char* path, struct stat64* to), to, sizeof *to, version,
             here.get(), to)
FERMATA_LOOK(__lxstat, (int version, const char* path, struct stat* to), to, sizeof *to, version, here.get(),
             to)
FERMATA_LOOK(__lxstat64, (int version, const char* path, struct stat64* to), to, sizeof *to, version,
             here.get(), to)
