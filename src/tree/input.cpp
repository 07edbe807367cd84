#include "tree/input.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>

#include "base/error.h"
#include "base/fd.h"

namespace fermata::tree {

std::optional<InputFile> InputFile::behind(int fd) {
    struct stat open_one, named;
    if (::fstat(fd, &open_one) != 0 || !S_ISREG(open_one.st_mode)) return std::nullopt;
    char path[4096];
    ssize_t size = ::readlink(("/proc/self/fd/" + std::to_string(fd)).c_str(), path, sizeof path);
    if (size <= 0 || static_cast<size_t>(size) == sizeof path) return std::nullopt;
    InputFile file{std::string(path, static_cast<size_t>(size)), open_one.st_ino, ::lseek(fd, 0, SEEK_CUR)};
    // A here-document's file has no name any more.
    if (::stat(file.path.c_str(), &named) != 0 || named.st_ino != file.inode ||
        named.st_dev != open_one.st_dev || ::access(file.path.c_str(), R_OK) != 0 || file.offset < 0)
        return std::nullopt;
    return file;
}

std::string InputFile::encoded() const { return fmt::format("{}:{}:{}", inode, offset, path); }

std::optional<InputFile> InputFile::decoded(const std::string& word) {
    InputFile file;
    const char* end = word.data() + word.size();
    auto first = std::from_chars(word.data(), end, file.inode);
    if (first.ec != std::errc() || first.ptr == end || *first.ptr != ':') return std::nullopt;
    auto second = std::from_chars(first.ptr + 1, end, file.offset);
    if (second.ec != std::errc() || second.ptr == end || *second.ptr != ':') return std::nullopt;
    file.path.assign(second.ptr + 1, end);
    if (file.path.empty()) return std::nullopt;
    return file;
}

void InputFile::become_standard_input() const {
    Fd fd(::open(path.c_str(), O_RDONLY));
    struct stat here;
    if (!fd || ::fstat(fd.get(), &here) != 0 || here.st_ino != inode ||
        ::lseek(fd.get(), offset, SEEK_SET) != offset || ::dup2(fd.get(), 0) != 0)
        fail(
            "standard input, {}, is not the same file on this node: keep it on a shared file system, or give "
            "it through "
            "a pipe (cat FILE | fermata run …)",
            path);
}

}  // namespace fermata::tree
