#include "front/which/elf_view.h"

namespace fermata::front::which {
namespace {

// ld.so has made some entries absolute when it asks, and leaves others relative.
uint64_t absolute(uint64_t value, uint64_t bias) noexcept { return value < bias ? value + bias : value; }

uint64_t entry(const Elf64_Dyn* dynamic, Elf64_Sxword tag) noexcept {
    for (; dynamic->d_tag != DT_NULL; ++dynamic)
        if (dynamic->d_tag == tag) return dynamic->d_un.d_val;
    return 0;
}

uint32_t gnu_hash(const char* name) noexcept {
    uint32_t hash = 5381;
    for (; *name != 0; ++name) hash = hash * 33 + static_cast<unsigned char>(*name);
    return hash;
}

struct File {
    const char* at;
    uint64_t size;
    // `bytes` of the file from `offset` on, or null.
    template <class T>
    const T* part(uint64_t offset, uint64_t bytes) const noexcept {
        if (offset > size || bytes > size - offset || offset % alignof(T) != 0) return nullptr;
        return reinterpret_cast<const T*>(at + offset);
    }
};

}  // namespace

const char* soname_in_file(const char* bytes, uint64_t size) noexcept {
    const File file{bytes, size};
    auto* header = file.part<Elf64_Ehdr>(0, sizeof(Elf64_Ehdr));
    if (header == nullptr || header->e_ident[0] != ELFMAG0 || header->e_ident[1] != ELFMAG1 ||
        header->e_ident[2] != ELFMAG2 || header->e_ident[3] != ELFMAG3 ||
        header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_machine != EM_X86_64 ||
        header->e_type != ET_DYN || header->e_phentsize != sizeof(Elf64_Phdr))
        return nullptr;
    auto* segments = file.part<Elf64_Phdr>(header->e_phoff, uint64_t{header->e_phnum} * sizeof(Elf64_Phdr));
    if (segments == nullptr) return nullptr;
    for (int i = 0; i < header->e_phnum; ++i) {
        if (segments[i].p_type != PT_DYNAMIC) continue;
        auto* dynamic = file.part<Elf64_Dyn>(segments[i].p_offset, segments[i].p_filesz);
        if (dynamic == nullptr) return nullptr;
        const uint64_t count = segments[i].p_filesz / sizeof(Elf64_Dyn);
        uint64_t strings = 0, strings_size = 0, soname = 0;
        for (uint64_t k = 0; k < count && dynamic[k].d_tag != DT_NULL; ++k) {
            if (dynamic[k].d_tag == DT_STRTAB) strings = dynamic[k].d_un.d_ptr;
            if (dynamic[k].d_tag == DT_STRSZ) strings_size = dynamic[k].d_un.d_val;
            if (dynamic[k].d_tag == DT_SONAME) soname = dynamic[k].d_un.d_val;
        }
        if (strings == 0 || soname == 0 || soname >= strings_size) return nullptr;
        for (int k = 0; k < header->e_phnum; ++k) {
            const Elf64_Phdr& p = segments[k];
            if (p.p_type != PT_LOAD || strings < p.p_vaddr || strings - p.p_vaddr >= p.p_filesz) continue;
            const uint64_t offset = strings - p.p_vaddr + p.p_offset + soname;
            const char* name = file.part<char>(offset, 1);
            if (name == nullptr) return nullptr;
            for (uint64_t n = 0; n < strings_size - soname && offset + n < size; ++n)
                if (name[n] == 0) return name;
            return nullptr;
        }
    }
    return nullptr;
}

const char* soname_in_memory(uint64_t bias, const Elf64_Dyn* dynamic) noexcept {
    if (dynamic == nullptr) return nullptr;
    const uint64_t soname = entry(dynamic, DT_SONAME), strings = entry(dynamic, DT_STRTAB);
    if (soname == 0 || strings == 0) return nullptr;
    return reinterpret_cast<const char*>(absolute(strings, bias) + soname);
}

uint64_t symbol_in_memory(uint64_t bias, const Elf64_Dyn* dynamic, const char* name) noexcept {
    if (dynamic == nullptr) return 0;
    const uint64_t strings_at = entry(dynamic, DT_STRTAB), symbols_at = entry(dynamic, DT_SYMTAB),
                   hash_at = entry(dynamic, DT_GNU_HASH);
    if (strings_at == 0 || symbols_at == 0 || hash_at == 0) return 0;
    const char* strings = reinterpret_cast<const char*>(absolute(strings_at, bias));
    auto* symbols = reinterpret_cast<const Elf64_Sym*>(absolute(symbols_at, bias));
    auto* table = reinterpret_cast<const uint32_t*>(absolute(hash_at, bias));
    const uint32_t buckets = table[0], first = table[1], words = table[2];
    const uint32_t* bucket = table + 4 + size_t{words} * 2;
    const uint32_t* chain = bucket + buckets;
    if (buckets == 0) return 0;
    const uint32_t hash = gnu_hash(name);
    uint32_t at = bucket[hash % buckets];
    if (at < first) return 0;
    for (;; ++at) {
        const uint32_t here = chain[at - first];
        if ((here | 1) == (hash | 1) && symbols[at].st_shndx != SHN_UNDEF &&
            same(strings + symbols[at].st_name, name))
            return bias + symbols[at].st_value;
        if ((here & 1) != 0) return 0;
    }
}

}  // namespace fermata::front::which
