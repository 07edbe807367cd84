// A shadow has the file's size and holes for its bytes, so that pages with data are what the program has
// written, except for those that were filled from the file: there the shadow is compared with what it began
// with. A page of the old file that was not filled and has data cannot be told apart: refused.
#include "lower/written_files.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <list>
#include <vector>

#include "base/error.h"
#include "base/kill_point.h"
#include "base/page.h"
#include "lower/at_place.h"
#include "lower/log_files.h"
#include "lower/private_files.h"
#include "lower/program_descriptors.h"
#include "split/fds/descriptors.h"

namespace fermata::lower {
namespace {

constexpr int64_t kFilled = 64 << 20;  // so large a file is filled as a whole
constexpr int64_t kHead = 1 << 20;     // of larger ones: where headers are written again

struct Shadow {
    Fd real;          // none: the file has no name any more, nobody will read it
    Fd data, before;  // what the program writes, what was filled in
    int64_t old_size = 0;
    std::vector<Extent> filled;
    dev_t device = 0;  // of the file
    ino_t inode = 0;
    dev_t data_device = 0;
    ino_t data_inode = 0;
};
std::list<Shadow> shadows;

Fd open_aside(int descriptor, int flags) {
    Fd own = open_again(descriptor, flags);
    return own ? Fd(split::raise_descriptor(own.release())) : Fd();
}

void fill(Shadow& shadow, int from) {
    const auto page = static_cast<int64_t>(kPage);
    if (shadow.old_size <= kFilled)
        shadow.filled = {{0, shadow.old_size}};
    else
        shadow.filled = {{0, kHead}, {shadow.old_size / page * page - kHead, shadow.old_size}};
    std::vector<char> bytes(kPiece);
    for (const Extent& extent : shadow.filled)
        in_pieces(extent, [&](int64_t at, size_t size) {
            const size_t there = read_at(from, bytes.data(), size, at);
            write_at(shadow.data.get(), bytes.data(), there, at);
            write_at(shadow.before.get(), bytes.data(), there, at);
        });
}

Shadow& make_shadow(Fd real, int from, int64_t size) {
    Shadow shadow;
    shadow.old_size = size;
    shadow.data = make_file_aside("fermata-shadow");
    if (::ftruncate(shadow.data.get(), size) != 0) fail_errno("cannot make a shadow of {} bytes", size);
    struct stat what {};
    ::fstat(shadow.data.get(), &what);
    shadow.data_device = what.st_dev;
    shadow.data_inode = what.st_ino;
    if (real && ::fstat(real.get(), &what) == 0) {
        shadow.device = what.st_dev;
        shadow.inode = what.st_ino;
    }
    shadow.real = std::move(real);
    if (size > 0) {
        shadow.before = make_file_aside("fermata-before");
        if (::ftruncate(shadow.before.get(), size) != 0) fail_errno("cannot keep {} bytes of a file", size);
        fill(shadow, from);
    }
    return shadows.emplace_back(std::move(shadow));
}

bool writes(int descriptor) {
    struct stat what {};
    return ::fstat(descriptor, &what) == 0 && S_ISREG(what.st_mode) &&
           (::fcntl(descriptor, F_GETFL) & (O_ACCMODE | O_APPEND)) == O_WRONLY;
}

Shadow& shadow_of(int descriptor) {
    struct stat what {};
    ::fstat(descriptor, &what);
    for (Shadow& shadow : shadows)
        if (shadow.real && shadow.device == what.st_dev && shadow.inode == what.st_ino) return shadow;
    Fd real = open_aside(descriptor, O_WRONLY);
    const Fd from = open_aside(descriptor, O_RDONLY);
    if (!real || !from) fail_errno("cannot open {} again", name_of(descriptor));
    return make_shadow(std::move(real), from.get(), what.st_size);
}

bool is_filled(const Shadow& shadow, int64_t at) {
    return std::any_of(shadow.filled.begin(), shadow.filled.end(),
                       [at](const Extent& extent) { return at >= extent.begin && at < extent.end; });
}

// Writes the bytes of [at, at + size) that are not those of `before`.
void write_changed(const Shadow& shadow, const char* now, const char* before, size_t size, int64_t at) {
    for (size_t begin = 0; begin < size;) {
        if (now[begin] == before[begin]) {
            ++begin;
            continue;
        }
        size_t end = begin + 1;
        while (end < size && now[end] != before[end]) ++end;
        write_at(shadow.real.get(), now + begin, end - begin, at + static_cast<int64_t>(begin));
        begin = end;
    }
}

// Beyond the old end the file began with zeros, for everybody who writes there.
void put_page(const Shadow& shadow, const char* now, size_t size, int64_t at) {
    const auto old =
        static_cast<size_t>(std::clamp<int64_t>(shadow.old_size - at, 0, static_cast<int64_t>(size)));
    char before[kPage] = {};
    if (old > 0 && is_filled(shadow, at))
        read_at(shadow.before.get(), before, old, at);
    else if (std::any_of(now, now + old, [](char byte) { return byte != 0; }))
        fail("what a copy has written in the middle of {} cannot be told from what was there before",
             name_of(shadow.real.get()));
    write_changed(shadow, now, before, size, at);
}

void put_into_file(const Shadow& shadow) {
    kill_point("promotion.puts_file");
    struct stat what {};
    if (::fstat(shadow.data.get(), &what) != 0) fail_errno("cannot read what a copy has written");
    if (what.st_size < shadow.old_size)
        fail("the program has cut {}: its copy cannot write it", name_of(shadow.real.get()));
    char page[kPage];
    for (int64_t at = 0; (at = ::lseek(shadow.data.get(), at, SEEK_DATA)) >= 0;) {
        const int64_t end = ::lseek(shadow.data.get(), at, SEEK_HOLE);
        for (at = at / int64_t{kPage} * int64_t{kPage}; at < end; at += int64_t{kPage})
            put_page(shadow, page, read_at(shadow.data.get(), page, sizeof page, at), at);
    }
    struct stat real {};
    if (::fstat(shadow.real.get(), &real) == 0 && real.st_size < what.st_size &&
        ::ftruncate(shadow.real.get(), what.st_size) != 0)
        fail_errno("cannot write {}", name_of(shadow.real.get()));
}

}  // namespace

std::string why_no_shadow(int descriptor) {
    if (is_private(descriptor)) return why_not_private(descriptor);
    if (!writes(descriptor)) return fmt::format("it has {} open", name_of(descriptor));
    if (!open_again(descriptor, O_WRONLY) || !open_again(descriptor, O_RDONLY))
        return fmt::format("it may not open {} again", name_of(descriptor));
    return "";
}

void write_to_shadows() {
    std::vector<int> descriptors = programs_descriptors();
    std::erase_if(descriptors, [](int one) { return one <= STDERR_FILENO || !writes(one); });
    for (const SamePlace& some : by_place(descriptors))
        put_in_place(some, open_again(shadow_of(some.front()).data.get(), O_WRONLY));
}

int begin_shadow(Fd real, int64_t size) {
    Fd from;
    if (real && size > 0) from = open_aside(real.get(), O_RDONLY);
    if (size > 0 && !from) fail("a copy may not read a file that its program writes");
    return make_shadow(std::move(real), from.get(), size).data.get();
}

void write_to_files() {
    for (const Shadow& shadow : shadows) {
        if (!shadow.real) continue;
        put_into_file(shadow);
        std::vector<int> descriptors = programs_descriptors();
        std::erase_if(descriptors, [&](int one) {
            struct stat what {};
            return ::fstat(one, &what) != 0 || what.st_dev != shadow.data_device ||
                   what.st_ino != shadow.data_inode;
        });
        for (const SamePlace& some : by_place(descriptors))
            put_in_place(some, open_again(shadow.real.get(), O_WRONLY));
    }
    shadows.clear();
}

}  // namespace fermata::lower
