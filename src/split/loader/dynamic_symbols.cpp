#include "split/loader/dynamic_symbols.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/fd.h"

namespace fermata::split {
namespace {

constexpr uint64_t kMost = 256 << 20;  // of a table, in bytes

template <class T>
std::vector<T> read_table(int fd, uint64_t offset, uint64_t size) {
    if (size > kMost) return {};
    std::vector<T> table(size / sizeof(T));
    size = table.size() * sizeof(T);
    if (::pread(fd, table.data(), size, static_cast<off_t>(offset)) != static_cast<ssize_t>(size)) return {};
    return table;
}

}  // namespace

std::vector<DynamicSymbol> dynamic_symbols(const ElfFile& file) {
    Fd fd(::open(file.path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd || file.header.e_shentsize != sizeof(Elf64_Shdr)) return {};
    auto sections = read_table<Elf64_Shdr>(fd.get(), file.header.e_shoff,
                                           uint64_t{file.header.e_shnum} * sizeof(Elf64_Shdr));
    std::vector<DynamicSymbol> found;
    for (const Elf64_Shdr& section : sections) {
        if (section.sh_type != SHT_DYNSYM || section.sh_link >= sections.size()) continue;
        const Elf64_Shdr& strings = sections[section.sh_link];
        auto text = read_table<char>(fd.get(), strings.sh_offset, strings.sh_size);
        if (text.empty() || text.back() != 0) continue;
        for (const Elf64_Sym& one : read_table<Elf64_Sym>(fd.get(), section.sh_offset, section.sh_size)) {
            unsigned binding = ELF64_ST_BIND(one.st_info);
            if (binding == STB_LOCAL || one.st_name == 0 || one.st_name >= text.size()) continue;
            found.push_back({text.data() + one.st_name, one.st_shndx != SHN_UNDEF, binding == STB_WEAK});
        }
    }
    return found;
}

}  // namespace fermata::split
