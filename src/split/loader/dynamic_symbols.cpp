#include "split/loader/dynamic_symbols.h"

#include <fcntl.h>

#include "base/fd.h"
#include "files/place.h"
#include "split/loader/elf_tables.h"

namespace fermata::split {
namespace {

std::vector<DynamicSymbol> symbols_of(const ElfFile& file, uint32_t table) {
    Fd fd = files::open_regular(file.path, O_RDONLY).fd;
    if (!fd) return {};
    const std::vector<Elf64_Shdr> sections = sections_of(fd.get(), file.header);
    std::vector<DynamicSymbol> found;
    for (const Elf64_Shdr& section : sections) {
        if (section.sh_type != table || section.sh_link >= sections.size()) continue;
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

}  // namespace

std::vector<DynamicSymbol> dynamic_symbols(const ElfFile& file) { return symbols_of(file, SHT_DYNSYM); }
std::vector<DynamicSymbol> all_symbols(const ElfFile& file) { return symbols_of(file, SHT_SYMTAB); }

}  // namespace fermata::split
