#include "lower/log_files.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/vfs.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/error.h"
#include "base/sys.h"
#include "split/fds/descriptors.h"

namespace fermata::lower {
namespace {

constexpr size_t kPlaces = 3, kLongest = 4096;
char places[kPlaces][kLongest];  // "" = none

void note(size_t at, const char* place) {
    if (place != nullptr && place[0] == '/' && std::strlen(place) < kLongest) std::strcpy(places[at], place);
}

bool is_memory(const char* place) noexcept {
    struct statfs what {};
    if (failed(sys(SYS_statfs, place, &what))) return false;
    return what.f_type == TMPFS_MAGIC || what.f_type == RAMFS_MAGIC;
}

// Some file systems (NFS) have no files without a name.
long make_in(const char* place) noexcept {
    const long made = sys(SYS_openat, AT_FDCWD, place, O_TMPFILE | O_RDWR | O_EXCL | O_CLOEXEC, 0600);
    if (made != -EOPNOTSUPP && made != -EISDIR && made != -EINVAL) return made;
    const long folder = sys(SYS_openat, AT_FDCWD, place, O_DIRECTORY | O_PATH | O_CLOEXEC);
    if (failed(folder)) return folder;
    char name[] = ".fermata-log-0000000000000000";
    uint64_t random = 0;
    sys(SYS_getrandom, &random, sizeof random, 0);
    for (size_t i = sizeof name - 2; random != 0; random >>= 4) name[i--] = "0123456789abcdef"[random & 15];
    const long named =
        sys(SYS_openat, folder, name, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (!failed(named)) sys(SYS_unlinkat, folder, name, 0);
    sys(SYS_close, folder);
    return named;
}

}  // namespace

void note_places_of_log_files(const std::string& node_dir) {
    note(0, std::getenv("TMPDIR"));
    note(1, node_dir.c_str());
    note(2, "/var/tmp");
}

int make_log_file(const char** place) noexcept {
    long error = -ENOENT;
    for (const bool in_memory : {false, true})
        for (const char* one : places) {
            if (one[0] == 0 || is_memory(one) != in_memory) continue;
            const long made = make_in(one);
            if (failed(made)) {
                error = made;
                continue;
            }
            *place = one;
            return split::raise_descriptor(static_cast<int>(made));
        }
    return static_cast<int>(error);
}

Fd make_file_aside(const char* name) {
    const char* place = nullptr;
    Fd made(make_log_file(&place));
    if (!made) made = Fd(split::raise_descriptor(::memfd_create(name, MFD_CLOEXEC)));
    if (!made) fail_errno("no file for what a copy writes");
    return made;
}

}  // namespace fermata::lower
