#include "split/thread_pointer/mapped_object.h"

#include <elf.h>
#include <fcntl.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/fd.h"
#include "files/place.h"
#include "split/loader/elf_file.h"
#include "split/loader/elf_tables.h"

namespace fermata::split::thread_pointer {
namespace {

bool any_offset(const Elf64_Rela* entry, uint64_t bytes) {
    for (const Elf64_Rela* end = entry + bytes / sizeof *entry; entry < end; ++entry) {
        switch (ELF64_R_TYPE(entry->r_info)) {
            case R_X86_64_TPOFF64:
            case R_X86_64_TLSDESC:
                return true;
            default:
                break;
        }
    }
    return false;
}

bool relocations_have_offsets(const Elf64_Dyn* dynamic, uint64_t base) {
    // glibc 2.36 writes addresses over the offsets in some objects' dynamic sections, in others (the vDSO's)
    // not.
    auto absolute = [base](uint64_t pointer) { return pointer < base ? pointer + base : pointer; };
    uint64_t tables[2] = {}, sizes[2] = {};
    for (; dynamic->d_tag != DT_NULL; ++dynamic) {
        if (dynamic->d_tag == DT_RELA) tables[0] = absolute(dynamic->d_un.d_ptr);
        if (dynamic->d_tag == DT_RELASZ) sizes[0] = dynamic->d_un.d_val;
        if (dynamic->d_tag == DT_JMPREL) tables[1] = absolute(dynamic->d_un.d_ptr);
        if (dynamic->d_tag == DT_PLTRELSZ) sizes[1] = dynamic->d_un.d_val;
    }
    for (int i = 0; i < 2; ++i)
        if (tables[i] != 0 && any_offset(reinterpret_cast<const Elf64_Rela*>(tables[i]), sizes[i]))
            return true;
    return false;
}

// Executable sections by the file's section headers, which are not in memory. Empty if the file has none, or
// is not the one that was mapped.
std::vector<Range> code_sections(const dl_phdr_info& info) {
    ElfFile file;
    const std::string why = file.read(*info.dlpi_name != 0 ? info.dlpi_name : "/proc/self/exe");
    if (!why.empty() || file.segments.size() != info.dlpi_phnum ||
        std::memcmp(file.segments.data(), info.dlpi_phdr, info.dlpi_phnum * sizeof *info.dlpi_phdr) != 0)
        return {};
    Fd fd = files::open_regular(file.path, O_RDONLY).fd;
    if (!fd) return {};
    std::vector<Range> code;
    for (const Elf64_Shdr& section : sections_of(fd.get(), file.header)) {
        if ((section.sh_flags & SHF_EXECINSTR) == 0 || section.sh_type != SHT_PROGBITS) continue;
        uint64_t begin = info.dlpi_addr + section.sh_addr;
        if (section.sh_size > UINT64_MAX - begin) return {};
        code.push_back(Range::sized(begin, section.sh_size));
    }
    return code;
}

// Finds the note NT_GNU_BUILD_ID, as hex.
std::string build_id_in(Range notes, uint64_t alignment) {
    constexpr size_t kLeast = 8, kMost = 64;
    constexpr char kDigits[] = "0123456789abcdef", kGnu[] = "GNU";
    auto up = [&](uint64_t size) { return alignment == 8 ? (size + 7) / 8 * 8 : (size + 3) / 4 * 4; };
    for (uint64_t at = notes.begin(); notes.end() - at >= sizeof(Elf64_Nhdr);) {
        Elf64_Nhdr note;
        std::memcpy(&note, reinterpret_cast<const void*>(at), sizeof note);
        const uint64_t name = at + sizeof note, words = up(sizeof note + note.n_namesz);
        if (words + up(note.n_descsz) > notes.end() - at) return {};
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == sizeof kGnu && note.n_descsz >= kLeast &&
            note.n_descsz <= kMost &&
            std::memcmp(reinterpret_cast<const void*>(name), kGnu, sizeof kGnu) == 0) {
            std::string id;
            for (const auto* byte = reinterpret_cast<const uint8_t*>(at + words);
                 id.size() < size_t{2} * note.n_descsz; ++byte) {
                id += kDigits[*byte >> 4];
                id += kDigits[*byte & 15];
            }
            return id;
        }
        at += words + up(note.n_descsz);
    }
    return {};
}

// The same for notes that are in memory.
std::string build_id_of(const dl_phdr_info& info) {
    std::string id;
    for (int i = 0; i < info.dlpi_phnum && id.empty(); ++i) {
        const Elf64_Phdr& notes = info.dlpi_phdr[i];
        if (notes.p_type != PT_NOTE) continue;
        for (int j = 0; j < info.dlpi_phnum; ++j) {
            const Elf64_Phdr& load = info.dlpi_phdr[j];
            if (load.p_type == PT_LOAD && (load.p_flags & PF_R) != 0 && notes.p_vaddr >= load.p_vaddr &&
                notes.p_filesz <= load.p_filesz &&
                notes.p_vaddr - load.p_vaddr <= load.p_filesz - notes.p_filesz) {
                id = build_id_in(Range::sized(info.dlpi_addr + notes.p_vaddr, notes.p_filesz), notes.p_align);
                break;
            }
        }
    }
    return id;
}

}  // namespace

MappedObject::MappedObject(const dl_phdr_info& info)
    : name(info.dlpi_name), base(info.dlpi_addr), build_id(build_id_of(info)) {
    for (int i = 0; i < info.dlpi_phnum; ++i) {
        const Elf64_Phdr& segment = info.dlpi_phdr[i];
        uint64_t address = base + segment.p_vaddr;
        if (segment.p_type == PT_LOAD && (segment.p_flags & PF_X) != 0)
            code.push_back(Range::sized(address, segment.p_filesz));
        if (segment.p_type == PT_GNU_EH_FRAME) unwind_header = address;
        // Only a program may have its own offsets written into its code (local-exec).
        if (segment.p_type == PT_TLS && name.empty()) offsets_in_registers = true;
        if (segment.p_type == PT_DYNAMIC && !offsets_in_registers)
            offsets_in_registers =
                relocations_have_offsets(reinterpret_cast<const Elf64_Dyn*>(address), base);
    }
    // Some linkers put constants and unwind tables among the code: bytes there mean nothing.
    bool mixed = std::any_of(code.begin(), code.end(), [&](Range r) { return r.contains(unwind_header); });
    if (!mixed) return;
    if (std::vector<Range> sections = code_sections(info); !sections.empty()) code = std::move(sections);
}

Range MappedObject::extent() const {
    Range all;
    for (Range r : code) all = all.empty() ? r : all.hull(r);
    return all;
}

}  // namespace fermata::split::thread_pointer
