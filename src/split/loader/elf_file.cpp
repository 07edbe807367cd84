#include "split/loader/elf_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/fd.h"
#include "files/place.h"
#include "split/loader/elf_tables.h"

namespace fermata::split {
namespace {

bool read_at(int fd, void* data, size_t size, uint64_t offset) {
    return pread(fd, data, size, off_t(offset)) == ssize_t(size);
}

const char* name_of_machine(unsigned machine) {
    switch (machine) {
        case EM_386:
            return "32-bit x86";
        case EM_AARCH64:
            return "aarch64";
        case EM_PPC64:
            return "ppc64";
        case EM_RISCV:
            return "riscv";
        case EM_S390:
            return "s390x";
        default:
            return "another machine";
    }
}

constexpr uint64_t kMost = 64 << 20;  // of a table, in bytes

}  // namespace

std::string ElfFile::read(const std::string& file) {
    path = file;
    auto [fd, error, why] = files::open_regular(file, O_RDONLY);
    if (!fd) return "cannot be read: " + why;
    if (!read_at(fd.get(), &header, sizeof header, 0) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
        return "is not an ELF file";
    if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != EM_X86_64)
        return std::string("was built for ") + name_of_machine(header.e_machine) + ", this machine is x86-64";
    if (header.e_type != ET_EXEC && header.e_type != ET_DYN)
        return "is an ELF file, but no program or library";
    if (header.e_phentsize != sizeof(Elf64_Phdr) || header.e_phnum == 0) return "has no program headers";
    segments.resize(header.e_phnum);
    if (!read_at(fd.get(), segments.data(), segments.size() * sizeof(Elf64_Phdr), header.e_phoff))
        return "is cut off";

    auto offset_of = [&](uint64_t address) -> uint64_t {
        for (const auto& p : segments)
            if (p.p_type == PT_LOAD && address >= p.p_vaddr && address < p.p_vaddr + p.p_filesz)
                return address - p.p_vaddr + p.p_offset;
        return 0;
    };
    for (const auto& p : segments) {
        if (p.p_type == PT_INTERP && p.p_filesz > 1 && p.p_filesz < 4096) {
            interpreter.resize(p.p_filesz);
            if (!read_at(fd.get(), interpreter.data(), p.p_filesz, p.p_offset)) return "is cut off";
            interpreter.resize(std::strlen(interpreter.c_str()));
        }
        if (p.p_type != PT_DYNAMIC) continue;
        dynamic = true;
        if (p.p_filesz > kMost || !lies_inside(fd.get(), p.p_offset, p.p_filesz)) return "is cut off";
        std::vector<Elf64_Dyn> entries(p.p_filesz / sizeof(Elf64_Dyn));
        if (!read_at(fd.get(), entries.data(), entries.size() * sizeof(Elf64_Dyn), p.p_offset))
            return "is cut off";
        uint64_t strings_at = 0, strings_size = 0;
        for (const auto& d : entries) {
            if (d.d_tag == DT_NULL) break;
            if (d.d_tag == DT_STRTAB) strings_at = offset_of(d.d_un.d_ptr);
            if (d.d_tag == DT_STRSZ) strings_size = d.d_un.d_val;
        }
        if (!strings_at || !strings_size || strings_size > kMost) continue;
        if (!lies_inside(fd.get(), strings_at, strings_size)) return "is cut off";
        std::string strings(strings_size, '\0');
        if (!read_at(fd.get(), strings.data(), strings_size, strings_at)) return "is cut off";
        auto text = [&](uint64_t at) {
            return at < strings_size ? std::string(strings.c_str() + at) : std::string();
        };
        for (const auto& d : entries) {
            if (d.d_tag == DT_NULL) break;
            if (d.d_tag == DT_NEEDED) needed.push_back(text(d.d_un.d_val));
            if (d.d_tag == DT_SONAME) soname = text(d.d_un.d_val);
            if (d.d_tag == DT_RPATH) rpath = text(d.d_un.d_val);
            if (d.d_tag == DT_RUNPATH) runpath = text(d.d_un.d_val);
        }
    }
    return "";
}

}  // namespace fermata::split
