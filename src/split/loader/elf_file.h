// Read-only view of an ELF64 file on disk: what the checks and the loader need of it.
#pragma once

#include <elf.h>

#include <string>
#include <vector>

namespace fermata::split {

struct ElfFile {
    std::string path;
    Elf64_Ehdr header{};
    std::vector<Elf64_Phdr> segments;
    std::string interpreter;  // PT_INTERP, "" = none
    std::string soname;
    std::vector<std::string> needed;  // DT_NEEDED in order
    std::string rpath, runpath;
    bool dynamic = false;

    // "" or why this is not an ELF program of this machine (without the path).
    std::string read(const std::string& file);
};

}  // namespace fermata::split
