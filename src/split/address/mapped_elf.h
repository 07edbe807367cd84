// Symbols of a shared object that lies mapped in memory: a vDSO, or a library of the other half.
#pragma once

#include <elf.h>

#include <cstdint>

namespace fermata::split {

inline const Elf64_Phdr* program_headers(const Elf64_Ehdr* elf) {
    return reinterpret_cast<const Elf64_Phdr*>(reinterpret_cast<const char*>(elf) + elf->e_phoff);
}

// Address of an exported symbol of the object whose ELF header lies at `image`; 0 when it has none of that
// name or is no ELF file.
uint64_t symbol_in_memory(uint64_t image, const char* name);

}  // namespace fermata::split
