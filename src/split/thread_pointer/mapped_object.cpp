#include "split/thread_pointer/mapped_object.h"

#include <elf.h>

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

}  // namespace

MappedObject::MappedObject(const dl_phdr_info& info) : name(info.dlpi_name), base(info.dlpi_addr) {
    for (int i = 0; i < info.dlpi_phnum; ++i) {
        const Elf64_Phdr& segment = info.dlpi_phdr[i];
        uint64_t address = base + segment.p_vaddr;
        if (segment.p_type == PT_LOAD && (segment.p_flags & PF_X) != 0)
            code.push_back({address, address + segment.p_filesz});
        if (segment.p_type == PT_GNU_EH_FRAME) unwind_header = address;
        // Only a program may have its own offsets written into its code (local-exec).
        if (segment.p_type == PT_TLS && name.empty()) offsets_in_registers = true;
        if (segment.p_type == PT_DYNAMIC && !offsets_in_registers)
            offsets_in_registers =
                relocations_have_offsets(reinterpret_cast<const Elf64_Dyn*>(address), base);
    }
}

}  // namespace fermata::split::thread_pointer
