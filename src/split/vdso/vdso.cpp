#include "split/vdso/vdso.h"

#include <elf.h>
#include <sys/auxv.h>

#include <cstring>
#include <type_traits>

#include "base/error.h"
#include "split/address/mapped_elf.h"
#include "split/address/raw.h"

extern "C" const char fermata_vdso_bytes[], fermata_vdso_bytes_end[];

namespace fermata::split {
namespace {

// In the order of FermataVdsoFunction.
constexpr const char* kFunctions[FERMATA_VDSO_FUNCTIONS] = {
    "__vdso_clock_gettime", "__vdso_gettimeofday", "__vdso_time", "__vdso_clock_getres", "__vdso_getcpu"};

uint64_t mapped;

}  // namespace

void refill_vdso(uint64_t image) {
    auto* table = reinterpret_cast<FermataVdsoTable*>(symbol_in_memory(image, "fermata_vdso_table"));
    if (!table) fail("no vDSO image of Fermata at {:#x}: the checkpoint is damaged", image);
    uint64_t kernel = getauxval(AT_SYSINFO_EHDR);
    for (size_t i = 0; i < std::size(kFunctions); ++i) {
        table->kernel[i] = kernel ? symbol_in_memory(kernel, kFunctions[i]) : 0;
        if (table->listens == 0) table->now[i] = table->kernel[i];
    }
    mapped = image;
}

uint64_t map_vdso() {
    if (mapped) return mapped;
    auto* elf = reinterpret_cast<const Elf64_Ehdr*>(fermata_vdso_bytes);
    const Elf64_Phdr* p = program_headers(elf);
    uint64_t low = ~0ull, high = 0;
    for (int i = 0; i < elf->e_phnum; ++i) {
        if (p[i].p_type != PT_LOAD) continue;
        if (low == ~0ull) low = page_down(p[i].p_vaddr);
        high = page_up(p[i].p_vaddr + p[i].p_memsz);
    }
    long base = raw_mmap(0, high - low, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS);
    if (failed(base)) fail("cannot map the vDSO image: {}", std::strerror(int(-base)));
    uint64_t bias = uint64_t(base) - low;
    for (int i = 0; i < elf->e_phnum; ++i)
        if (p[i].p_type == PT_LOAD)
            std::memcpy(reinterpret_cast<char*>(bias) + p[i].p_vaddr, fermata_vdso_bytes + p[i].p_offset,
                        p[i].p_filesz);
    for (int i = 0; i < elf->e_phnum; ++i) {
        if (p[i].p_type != PT_LOAD) continue;
        int prot = (p[i].p_flags & PF_R ? PROT_READ : 0) | (p[i].p_flags & PF_W ? PROT_WRITE : 0) |
                   (p[i].p_flags & PF_X ? PROT_EXEC : 0);
        uint64_t begin = page_down(bias + p[i].p_vaddr);
        raw_mprotect(begin, page_up(bias + p[i].p_vaddr + p[i].p_memsz) - begin, prot);
    }
    refill_vdso(uint64_t(base));
    return mapped;
}

uint64_t vdso_image() { return mapped; }

FermataVdsoDoors vdso_doors() {
    const auto find = [](const char* name, auto& found) {
        found = reinterpret_cast<std::remove_reference_t<decltype(found)>>(symbol_in_memory(mapped, name));
    };
    FermataVdsoDoors doors{};
    find("fermata_vdso_table", doors.table);
    find("fermata_vdso_kernels_clock", doors.clock);
    find("fermata_vdso_cpu_clock", doors.cpu_clock);
    find("fermata_vdso_kernels_day", doors.day);
    return doors;
}

}  // namespace fermata::split
