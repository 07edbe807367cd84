// An ELF file of type ET_DYN in memory, mapped as fs/binfmt_elf.c does.
#pragma once

#include <cstdint>

#include "base/page.h"
#include "base/range.h"
#include "split/loader/elf_file.h"

namespace fermata::split {

struct LoadedElf {
    Range range;
    uint64_t bias = 0;  // what is added to the addresses of the file
    uint64_t entry = 0, headers = 0;
    uint16_t header_count = 0;
};

// Returns `size` bytes of address space without access, at the begin of `area`; an empty area: where the
// kernel likes. Throws fermata::Error, naming `what`.
uint64_t reserve(uint64_t size, Range area, uint64_t align, const char* what);

// Maps the file at the begin of `area` (as above). Throws fermata::Error.
LoadedElf map_elf(const ElfFile& elf, Range area);

}  // namespace fermata::split
