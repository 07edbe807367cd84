// Tables of an ELF64 file on disk. A table that cannot be read is empty; no memory is taken because a length
// says so.
#pragma once

#include <elf.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <vector>

namespace fermata::split {

// Whether the file has these bytes.
inline bool lies_inside(int fd, uint64_t offset, uint64_t bytes) {
    struct stat file {};
    if (::fstat(fd, &file) != 0) return false;
    auto size = static_cast<uint64_t>(file.st_size);
    return offset <= size && bytes <= size - offset;
}

template <class T>
std::vector<T> read_table(int fd, uint64_t offset, uint64_t bytes) {
    constexpr uint64_t kMost = 256 << 20;
    if (bytes > kMost || !lies_inside(fd, offset, bytes)) return {};
    std::vector<T> table(bytes / sizeof(T));
    const size_t size = table.size() * sizeof(T);
    if (::pread(fd, table.data(), size, static_cast<off_t>(offset)) != static_cast<ssize_t>(size)) return {};
    return table;
}

// Section headers.
inline std::vector<Elf64_Shdr> sections_of(int fd, const Elf64_Ehdr& header) {
    if (header.e_shentsize != sizeof(Elf64_Shdr)) return {};
    return read_table<Elf64_Shdr>(fd, header.e_shoff, uint64_t{header.e_shnum} * sizeof(Elf64_Shdr));
}

}  // namespace fermata::split
