// A file that is to be run: what `run --check`, `run` and the loader read of it.
#include "split/loader/program.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "fuzz.h"
#include "split/loader/dynamic_symbols.h"
#include "split/loader/mpi_imports.h"

namespace fermata::fuzz {
namespace {
namespace fs = std::filesystem;

struct Place {
    std::string directory;
    Place() {
        char name[] = "/dev/shm/fermata-fuzz-XXXXXX";
        if (!mkdtemp(name)) throw std::runtime_error("no scratch directory");
        directory = name;
    }
    ~Place() { fs::remove_all(directory); }
    std::string path() const { return directory + "/program"; }
};

Verdict run(Input input) {
    static Place place;
    {
        std::ofstream file(place.path(), std::ios::binary | std::ios::trunc);
        file.write(reinterpret_cast<const char*>(input.data()), static_cast<std::streamsize>(input.size()));
    }
    ::chmod(place.path().c_str(), 0700);
    split::ElfFile file;
    if (file.read(place.path()).empty())
        for (const split::DynamicSymbol& symbol : split::dynamic_symbols(file))
            require(symbol.name.size() <= input.size(), "a name longer than the file");
    // Nothing else is looked up.
    char* none[] = {const_cast<char*>("LD_LIBRARY_PATH=/nowhere"), const_cast<char*>("PATH=/nowhere"),
                    nullptr};
    split::ProgramCheck check = split::inspect_program(place.path(), "", none);
    if (!check.error.empty()) {
        require(check.error.find(place.path()) != std::string::npos,
                "a refusal without the name: " + check.error);
        return Verdict::refused;
    }
    split::mpi_imports(check, "");
    return Verdict::accepted;
}

// A program with an interpreter, a library's name and a symbol: one page, as a linker would write it.
std::vector<Bytes> seeds() {
    Bytes elf(0x300);
    auto put = [&](size_t at, const auto& value) { std::memcpy(elf.data() + at, &value, sizeof value); };
    Elf64_Ehdr header{};
    std::memcpy(header.e_ident, "\177ELF\2\1\1", 7);
    header.e_type = ET_DYN;
    header.e_machine = EM_X86_64;
    header.e_version = 1;
    header.e_ehsize = sizeof header;
    header.e_phoff = sizeof header;
    header.e_phentsize = sizeof(Elf64_Phdr);
    header.e_phnum = 3;
    header.e_shoff = 0x200;
    header.e_shentsize = sizeof(Elf64_Shdr);
    header.e_shnum = 3;
    put(0, header);
    Elf64_Phdr load{PT_LOAD, PF_R, 0, 0, 0, 0x300, 0x300, 4096},
        interp{PT_INTERP, PF_R, 0x100, 0x100, 0, 28, 28, 1},
        dynamic{PT_DYNAMIC, PF_R, 0x120, 0x120, 0, 6 * sizeof(Elf64_Dyn), 6 * sizeof(Elf64_Dyn), 8};
    put(0x40, load);
    put(0x40 + sizeof load, interp);
    put(0x40 + 2 * sizeof load, dynamic);
    std::memcpy(elf.data() + 0x100, "/lib64/ld-linux-x86-64.so.2", 28);
    Elf64_Dyn entries[] = {{DT_STRTAB, {0x190}}, {DT_STRSZ, {0x30}}, {DT_NEEDED, {1}},
                           {DT_SONAME, {1}},     {DT_RUNPATH, {15}}, {DT_NULL, {0}}};
    put(0x120, entries);
    std::memcpy(elf.data() + 0x191, "libmpi.so.40\0\0/opt/lib\0MPI_Send", 32);
    Elf64_Sym symbols[2] = {};
    symbols[1].st_name = 24;
    symbols[1].st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
    put(0x1c8, symbols);
    Elf64_Shdr sections[3] = {};
    sections[1].sh_type = SHT_DYNSYM;
    sections[1].sh_offset = 0x1c8;
    sections[1].sh_size = sizeof symbols;
    sections[1].sh_entsize = sizeof(Elf64_Sym);
    sections[1].sh_link = 2;
    sections[1].sh_info = 1;
    sections[2].sh_type = SHT_STRTAB;
    sections[2].sh_offset = 0x190;
    sections[2].sh_size = 0x30;
    put(0x200, sections);
    std::string script = "#!/bin/sh -e\necho\n";
    return {elf, Bytes(script.begin(), script.end())};
}

}  // namespace

const Target program{"program", run, nullptr, seeds, nullptr};

}  // namespace fermata::fuzz
