#include "split/address/mapped_elf.h"

#include <cstring>

namespace fermata::split {
namespace {

// Highest symbol index + 1. Newer kernels drop DT_HASH from their vDSO (6.?), so the GNU hash must do as
// well.
uint32_t count_symbols(const uint32_t* hash, const uint32_t* gnu) {
    if (hash) return hash[1];
    if (!gnu) return 0;
    uint32_t buckets = gnu[0], first = gnu[1], bloom = gnu[2];
    const uint32_t* bucket = gnu + 4 + size_t{bloom} * 2;
    const uint32_t* chain = bucket + buckets;
    uint32_t last = 0;
    for (uint32_t i = 0; i < buckets; ++i)
        if (bucket[i] > last) last = bucket[i];
    if (last < first) return first;
    while (!(chain[last - first] & 1)) ++last;
    return last + 1;
}

}  // namespace

uint64_t symbol_in_memory(uint64_t image, const char* name) {
    auto* elf = reinterpret_cast<const Elf64_Ehdr*>(image);
    if (!image || std::memcmp(elf->e_ident, ELFMAG, SELFMAG) != 0) return 0;
    const Elf64_Phdr* p = program_headers(elf);
    uint64_t bias = image;
    const Elf64_Dyn* dynamic = nullptr;
    for (int i = 0; i < elf->e_phnum; ++i)
        if (p[i].p_type == PT_LOAD && p[i].p_offset == 0) bias = image - p[i].p_vaddr;
    for (int i = 0; i < elf->e_phnum; ++i)
        if (p[i].p_type == PT_DYNAMIC) dynamic = reinterpret_cast<const Elf64_Dyn*>(bias + p[i].p_vaddr);
    if (!dynamic) return 0;
    const Elf64_Sym* symbols = nullptr;
    const char* strings = nullptr;
    const uint32_t *hash = nullptr, *gnu = nullptr;
    for (; dynamic->d_tag != DT_NULL; ++dynamic) {
        // ld.so has made a library's values absolute; a vDSO's stay relative to the image.
        uint64_t at = dynamic->d_un.d_ptr;
        if (at < bias) at += bias;
        switch (dynamic->d_tag) {
            case DT_SYMTAB:
                symbols = reinterpret_cast<const Elf64_Sym*>(at);
                break;
            case DT_STRTAB:
                strings = reinterpret_cast<const char*>(at);
                break;
            case DT_HASH:
                hash = reinterpret_cast<const uint32_t*>(at);
                break;
            case DT_GNU_HASH:
                gnu = reinterpret_cast<const uint32_t*>(at);
                break;
        }
    }
    if (!symbols || !strings) return 0;
    uint32_t count = count_symbols(hash, gnu);
    for (uint32_t i = 0; i < count; ++i)
        if (symbols[i].st_shndx != SHN_UNDEF && std::strcmp(strings + symbols[i].st_name, name) == 0)
            return bias + symbols[i].st_value;
    return 0;
}

}  // namespace fermata::split
