#include "front/posix/private_files.h"

#include <linux/magic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "front/core/bridge.h"
#include "front/core/fatal.h"
#include "front/core/front.h"
#include "front/core/line.h"
#include "front/posix/next.h"

namespace fermata::front::posix {
namespace {

namespace raw = split::raw;

split::PrivateFiles table;

long read_at(int descriptor, void* to, size_t size, int64_t at) noexcept {
    size_t done = 0;
    while (done < size) {
        const long more = raw::call(SYS_pread64, descriptor, raw::word(static_cast<char*>(to) + done),
                                    static_cast<long>(size - done), at + static_cast<int64_t>(done));
        if (more == -EINTR) continue;
        if (more < 0) return more;
        if (more == 0) break;
        done += static_cast<size_t>(more);
    }
    return static_cast<long>(done);
}

bool reads(int mode) noexcept { return (mode & O_ACCMODE) != O_WRONLY; }

// True of files whose bytes are what was written: not of the kernel's own.
bool is_file(int descriptor) noexcept {
    struct stat what;
    struct statfs where;
    return raw::call(SYS_fstat, descriptor, raw::word(&what)) == 0 && S_ISREG(what.st_mode) &&
           raw::call(SYS_fstatfs, descriptor, raw::word(&where)) == 0 && where.f_type != PROC_SUPER_MAGIC &&
           where.f_type != SYSFS_MAGIC;
}

// The state of a file: its size, and XXH3 of what a program may have read of it.
struct Content {
    int64_t size = 0;
    uint64_t digest = 0;
    bool operator==(const Content&) const = default;
};

Content content_of(int descriptor) noexcept {
    constexpr size_t kPiece = 256 << 10;
    constexpr int64_t kMost = 256 << 20;  // a long file is compared by its beginning and its size
    Content content;
    content.size = opened(descriptor).size;
    if (!reads(static_cast<int>(raw::call(SYS_fcntl, descriptor, F_GETFL)))) return content;
    const long made =
        raw::call(SYS_mmap, 0, kPiece, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (made < 0 && made > -4096) fatal_line("fermata: there is no memory to look at a file");
    auto* bytes = reinterpret_cast<char*>(made);
    for (int64_t at = 0; at < kMost;) {
        const long size = read_at(descriptor, bytes, kPiece, at);
        if (size <= 0) break;
        content.digest = XXH3_64bits_withSeed(bytes, static_cast<size_t>(size), content.digest);
        at += size;
    }
    raw::call(SYS_munmap, made, kPiece);
    return content;
}

// From the root, as the kernel names it but for links on the way; false: it is too long.
bool make_absolute(int directory, const char* path, char (&out)[PATH_MAX]) noexcept {
    size_t length = 0;
    if (path[0] != '/') {
        char link[40];
        Line(link, sizeof link) << "/proc/self/fd/" << directory;
        const long size = raw::call(SYS_readlink, raw::word(directory == AT_FDCWD ? "/proc/self/cwd" : link),
                                    raw::word(out), sizeof out - 2);
        if (size <= 0) return false;
        length = static_cast<size_t>(size);
        out[length++] = '/';
        while (path[0] == '.' && path[1] == '/') path += 2;
    }
    const size_t rest = strlen(path);
    if (length + rest >= sizeof out) return false;
    __builtin_memcpy(out + length, path, rest + 1);
    return true;
}

ShadowPath shadow_like(const Opened& was, int directory, const char* path, const void* bytes,
                       bool appends) noexcept {
    char whole[PATH_MAX];
    if (!make_absolute(directory, path, whole)) no_copy_may(path);
    const int shadow = bridge()->private_file({whole, was.device, was.inode, was.size, bytes, appends});
    if (shadow < 0) no_copy_may(path);
    ShadowPath made;
    Line(made.text, sizeof made.text) << "/proc/self/fd/" << shadow;
    return made;
}

}  // namespace

split::PrivateFiles* private_files() noexcept { return &table; }

ToldOpen::ToldOpen() noexcept {
    const long made = raw::call(SYS_mmap, 0, kRoom, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (made < 0 && made > -4096) fatal_line("fermata: there is no memory to tell a copy of a file");
    told_ = reinterpret_cast<Told*>(made);
}
ToldOpen::~ToldOpen() { raw::call(SYS_munmap, raw::word(told_), kRoom); }

size_t ToldOpen::look(int descriptor, bool appends) noexcept {
    Told& told = *told_;
    told.was = opened(descriptor);
    told.bytes = 0;
    if (told.was.error != 0 || told.was.regular == 0 || appends) return sizeof told;
    told.bytes = -1;
    if (told.was.size > static_cast<int64_t>(kMostTold)) return sizeof told;
    const long size = read_at(descriptor, told_ + 1, static_cast<size_t>(told.was.size), 0);
    if (size != told.was.size) return sizeof told;
    told.bytes = size;
    return sizeof told + static_cast<size_t>(size);
}

ShadowPath ToldOpen::shadow(int directory, const char* path, bool appends) const noexcept {
    const Told& told = *told_;
    if (told.was.regular == 0) no_copy_may(path);
    const bool here = !appends && told.bytes >= 0;
    if (!here && !appends) {
        const long file = raw::call(SYS_openat, directory, raw::word(path), O_RDONLY | O_CLOEXEC);
        must_be_same(static_cast<int>(file), told.was, path);
        raw::call(SYS_close, file);
    }
    return shadow_like(told.was, directory, path, here ? told_ + 1 : nullptr, appends);
}

int told_temporary(char* name, int flags, Temporary make) noexcept {
    if (!keeps_log() || !is_told()) {
        no_copy_may(name);
        return make.make(make.context);
    }
    struct {
        Opened was;
        char name[PATH_MAX];
    } told{};
    const size_t room = strlen(name) + 1;
    if (room > sizeof told.name) fatal_line("fermata: the template of mkstemp is longer than a path");
    int result = -1;
    bool here = false;
    recorded("mkstemp", &told, sizeof told, [&] {
        here = true;
        result = make.make(make.context);
        told.was = opened(result);
        __builtin_memcpy(told.name, name, room);
    });
    if (!here) {
        __builtin_memcpy(name, told.name, room);
        if (told.was.error == 0) {
            const ShadowPath shadow = shadow_like(told.was, AT_FDCWD, name, nullptr, false);
            result =
                static_cast<int>(raw::call(SYS_openat, AT_FDCWD, raw::word(shadow.text), O_RDWR | flags));
            if (result < 0) no_copy_may(name);
        }
    }
    if (told.was.error != 0) errno = told.was.error;
    return result;
}

bool is_private(int descriptor) noexcept {
    if (!is_file(descriptor)) return false;
    const auto mode = static_cast<int>(raw::call(SYS_fcntl, descriptor, F_GETFL));
    return (mode & O_ACCMODE) == O_RDWR || (mode & (O_ACCMODE | O_APPEND)) == (O_WRONLY | O_APPEND);
}

void told_close(int descriptor) noexcept {
    if (!keeps_log() || descriptor <= STDERR_FILENO || !is_told() || !is_private(descriptor)) return;
    const int kept = errno;
    const Content mine = content_of(descriptor);
    Content told = mine;
    recorded("close", &told, sizeof told, [] {});
    if (told != mine) no_copy_may("a file, which another process has changed, too");
    errno = kept;
}

void name_changed(int from_at, const char* from, int to_at, const char* to) noexcept {
    char before[PATH_MAX], now[PATH_MAX] = "";
    if (front.follows == 0 || from == nullptr || !make_absolute(from_at, from, before)) return;
    if (to != nullptr && !make_absolute(to_at, to, now)) return;
    for (split::PrivateFile& one : table.files)
        if (one.data_inode != 0 && strcmp(one.path, before) == 0) __builtin_memcpy(one.path, now, sizeof now);
}

}  // namespace fermata::front::posix
