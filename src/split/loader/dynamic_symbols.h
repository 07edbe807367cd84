// The dynamic symbols of an ELF file on disk: what it exports and what it wants from others.
#pragma once

#include <string>
#include <vector>

#include "split/loader/elf_file.h"

namespace fermata::split {

struct DynamicSymbol {
    std::string name;
    bool defined = false;
    bool weak = false;
};

// Symbols that are local are left out. Empty also for a file without section headers, whose symbols nobody
// counted.
std::vector<DynamicSymbol> dynamic_symbols(const ElfFile& file);
// Lists symbols that are not dynamic, too; none where the table was stripped.
std::vector<DynamicSymbol> all_symbols(const ElfFile& file);

}  // namespace fermata::split
