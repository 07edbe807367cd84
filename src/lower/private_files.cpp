#include "lower/private_files.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/fd.h"
#include "base/kill_point.h"
#include "lower/at_place.h"
#include "lower/log_files.h"
#include "lower/program_descriptors.h"
#include "lower/services.h"
#include "split/fds/descriptors.h"

namespace fermata::lower {
namespace {

using split::PrivateFile;

constexpr int64_t kMostBytes = 256 << 20;  // of one file
constexpr unsigned kWrites = O_WRONLY | O_RDWR;

struct stat facts_of(int descriptor) {
    struct stat facts {};
    if (::fstat(descriptor, &facts) != 0) fail_errno("cannot look at {}", name_of(descriptor));
    return facts;
}

PrivateFile& free_entry() {
    for (PrivateFile& one : the_upper()->private_files->files)
        if (one.data_inode == 0) return one;
    fail("it has more than {} files open for reading and writing", split::PrivateFiles::kMost);
}

void copy_bytes(int from, int to, int64_t size) {
    std::array<char, kPiece> bytes;
    in_pieces({0, size}, [&](int64_t at, size_t wanted) {
        write_at(to, bytes.data(), read_at(from, bytes.data(), wanted, at), at);
    });
}

// The program's descriptors that have the shadow open.
std::vector<int> users_of(const PrivateFile& file) {
    std::vector<int> all = programs_descriptors();
    std::erase_if(all, [&](int one) {
        struct stat what {};
        return ::fstat(one, &what) != 0 || what.st_dev != file.data_device || what.st_ino != file.data_inode;
    });
    return all;
}

void forget_unused() {
    for (PrivateFile& one : the_upper()->private_files->files)
        if (one.data_inode != 0 && users_of(one).empty()) one = {};
}

bool is_used(uint64_t device, uint64_t inode) {
    for (const PrivateFile& one : the_upper()->private_files->files)
        if (one.data_inode != 0 && one.device == device && one.inode == inode && !users_of(one).empty())
            return true;
    return false;
}

int mode_of(int descriptor) { return ::fcntl(descriptor, F_GETFL) & (O_ACCMODE | O_APPEND); }

// Mapped so that what the program writes to memory is in the file: nobody sees such writes.
bool is_mapped(uint64_t inode) {
    std::istringstream lines(read_file("/proc/self/maps"));
    for (std::string line; std::getline(lines, line);) {
        unsigned long long begin = 0, end = 0, offset = 0, number = 0;
        char may[8] = {}, device[24] = {};
        if (std::sscanf(line.c_str(), "%llx-%llx %7s %llx %23s %llu", &begin, &end, may, &offset, device,
                        &number) == 6 &&
            number == inode && may[1] == 'w' && may[3] == 's')
            return true;
    }
    return false;
}

bool only_appends(int descriptor) { return mode_of(descriptor) == (O_WRONLY | O_APPEND); }

// `path`: "" for a file without a name. The shadow, and its entry.
Fd make(const std::string& path, uint64_t device, uint64_t inode, int64_t size, bool appends) {
    forget_unused();
    PrivateFile& entry = free_entry();
    if (path.size() >= sizeof entry.path) fail("the path of {} is too long", path);
    Fd data = make_file_aside("fermata-private");
    if (::ftruncate(data.get(), size) != 0) fail_errno("no room for what a copy reads and writes");
    const struct stat made = facts_of(data.get());
    entry = {.data_device = made.st_dev,
             .data_inode = made.st_ino,
             .device = device,
             .inode = inode,
             .begins = appends ? size : 0,
             .path = {}};
    std::memcpy(entry.path, path.c_str(), path.size() + 1);
    return data;
}

// Another process on this node that can write the file.
bool others_write(const struct stat& file) {
    namespace fs = std::filesystem;
    std::error_code gone;
    for (const fs::directory_entry& process : fs::directory_iterator("/proc", gone)) {
        const std::string pid = process.path().filename();
        if (pid.find_first_not_of("0123456789") != std::string::npos || std::atoi(pid.c_str()) == ::getpid())
            continue;
        for (const fs::directory_entry& one : fs::directory_iterator(process.path() / "fd", gone)) {
            struct stat what {};
            if (::stat(one.path().c_str(), &what) != 0 || what.st_dev != file.st_dev ||
                what.st_ino != file.st_ino)
                continue;
            Fd info(
                ::open((process.path() / "fdinfo" / one.path().filename()).c_str(), O_RDONLY | O_CLOEXEC));
            char text[256] = {};
            unsigned flags = 0;
            if (info && ::read(info.get(), text, sizeof text - 1) > 0)
                if (const char* line = std::strstr(text, "flags:")) std::sscanf(line, "flags: %o", &flags);
            if ((flags & unsigned{O_PATH}) == 0 && (flags & kWrites) != 0) return true;
        }
    }
    return false;
}

// The pieces of the shadow that are not in the file.
template <typename Visit>
void other_pieces(int data, int real, Extent where, const Visit& visit) {
    std::array<char, kPiece> wanted, there;
    in_pieces(where, [&](int64_t at, size_t piece) {
        const size_t bytes = read_at(data, wanted.data(), piece, at);
        if (read_at(real, there.data(), bytes, at) != bytes ||
            std::memcmp(wanted.data(), there.data(), bytes) != 0)
            visit(wanted.data(), bytes, at);
    });
}

bool agree(int data, int real, Extent where) {
    bool same = true;
    other_pieces(data, real, where, [&](const char*, size_t, int64_t) { same = false; });
    return same;
}

// Makes the file what the shadow is. `appends`: what both have is the same then, unless others append, too.
void put_back(int data, int real, const PrivateFile& file, bool appends) {
    const struct stat what = facts_of(real);
    const int64_t size = facts_of(data).st_size;
    const Extent all{file.begins, size};
    if (size == what.st_size && agree(data, real, all)) return;
    if (others_write(what) ||
        (appends && !agree(data, real, {file.begins, std::min<int64_t>(size, what.st_size)})))
        fail("another process writes {}, too", file.path);
    other_pieces(data, real, all,
                 [&](const char* bytes, size_t piece, int64_t at) { write_at(real, bytes, piece, at); });
    if (::ftruncate(real, size) != 0) fail_errno("cannot cut {}", file.path);
}

// All the program's descriptors of one file.
void keep_one(const std::vector<int>& users, const struct stat& what) {
    const bool appends = std::all_of(users.begin(), users.end(), only_appends);
    const std::string name = what.st_nlink > 0 ? name_of(users.front()) : "";
    const Fd from = appends ? Fd() : open_again(users.front(), O_RDONLY);
    if (!appends && !from) fail_errno("cannot open {} again", name_of(users.front()));
    const Fd data = make(name, what.st_dev, what.st_ino, what.st_size, appends);
    if (!appends) copy_bytes(from.get(), data.get(), what.st_size);
    for (const SamePlace& some : by_place(users))
        put_in_place(some, open_again(data.get(), mode_of(some.front())));
}

void take(const PrivateFile& file) {
    const std::vector<int> users = users_of(file);
    if (users.empty() || file.path[0] == 0) return;
    if (is_mapped(file.data_inode)) fail("{} is mapped for writing", file.path);
    const bool reads_only = std::all_of(users.begin(), users.end(),
                                        [](int one) { return (mode_of(one) & O_ACCMODE) == O_RDONLY; });
    Fd real(split::raise_descriptor(::open(file.path, (reads_only ? O_RDONLY : O_RDWR) | O_CLOEXEC)));
    struct stat what {};
    if (!real || ::fstat(real.get(), &what) != 0 || what.st_dev != file.device || what.st_ino != file.inode)
        fail("{} is not the file any more that the rank had open", file.path);
    const Fd data = open_again(users.front(), O_RDONLY);
    if (!data) fail_errno("cannot read what a copy has written");
    put_back(data.get(), real.get(), file, std::all_of(users.begin(), users.end(), only_appends));
    for (const SamePlace& some : by_place(users))
        put_in_place(some, open_again(real.get(), mode_of(some.front())));
}

}  // namespace

bool is_private(int descriptor) {
    struct stat what {};
    if (::fstat(descriptor, &what) != 0 || !S_ISREG(what.st_mode)) return false;
    const int mode = mode_of(descriptor);
    return (mode & O_ACCMODE) == O_RDWR || mode == (O_WRONLY | O_APPEND);
}

std::string why_not_private(int descriptor) {
    const std::string name = name_of(descriptor);
    const bool appends = only_appends(descriptor);
    if (name.starts_with("/dev/shm/") || name.starts_with("/memfd:"))
        return fmt::format("it has {} open, which other processes may have mapped", name);
    if (!appends && facts_of(descriptor).st_size > kMostBytes)
        return fmt::format("it has {} open for reading and writing, which is longer than {} MiB", name,
                           kMostBytes >> 20);
    if (is_mapped(facts_of(descriptor).st_ino)) return fmt::format("it has {} mapped for writing", name);
    if (!appends && !open_again(descriptor, O_RDONLY)) return fmt::format("it may not open {} again", name);
    return "";
}

void keep_private_files() {
    std::vector<int> all = programs_descriptors();
    std::erase_if(all, [](int one) { return one <= STDERR_FILENO || !is_private(one); });
    while (!all.empty()) {
        const struct stat what = facts_of(all.front());
        const auto rest = std::stable_partition(all.begin(), all.end(), [&](int one) {
            const struct stat other = facts_of(one);
            return other.st_dev == what.st_dev && other.st_ino == what.st_ino;
        });
        keep_one({all.begin(), rest}, what);
        all.erase(all.begin(), rest);
    }
}

Fd begin_private_file(const split::PrivateWish& wish) {
    if (!wish.appends && wish.size > kMostBytes) fail("{} is too long for a copy", wish.path);
    if (is_used(wish.device, wish.inode)) fail("{} is open already", wish.path);
    Fd data = make(wish.path, wish.device, wish.inode, wish.size, wish.appends);
    if (wish.bytes != nullptr) {
        write_at(data.get(), static_cast<const char*>(wish.bytes), static_cast<size_t>(wish.size), 0);
    } else if (!wish.appends && wish.size > 0) {
        const Fd from(split::raise_descriptor(::open(wish.path, O_RDONLY | O_CLOEXEC)));
        if (!from) fail_errno("cannot read {}", wish.path);
        copy_bytes(from.get(), data.get(), wish.size);
    }
    return data;
}

void take_private_files() {
    for (PrivateFile& one : the_upper()->private_files->files) {
        if (one.data_inode != 0) take(one);
        kill_point("promotion.private_file");
        one = {};
    }
}

}  // namespace fermata::lower
