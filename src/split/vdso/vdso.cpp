#include "split/vdso/vdso.h"

#include <elf.h>
#include <sys/auxv.h>

#include <cstring>

#include "base/error.h"
#include "split/address/raw.h"

extern "C" const char fermata_vdso_bytes[], fermata_vdso_bytes_end[];

namespace fermata::split {
namespace {

// In the order of the slots in image.S.
constexpr const char* kFunctions[] = {"__vdso_clock_gettime", "__vdso_gettimeofday", "__vdso_time",
                                      "__vdso_clock_getres", "__vdso_getcpu"};

uint64_t mapped;
Range kernel_code;

const Elf64_Phdr* headers(const Elf64_Ehdr* elf) {
    return reinterpret_cast<const Elf64_Phdr*>(reinterpret_cast<const char*>(elf) + elf->e_phoff);
}

// Highest symbol index + 1. Newer kernels drop DT_HASH from their vDSO (6.?), so the GNU hash must do as
// well.
uint32_t count_symbols(const uint32_t* hash, const uint32_t* gnu) {
    if (hash) return hash[1];
    if (!gnu) return 0;
    uint32_t buckets = gnu[0], first = gnu[1], bloom = gnu[2];
    const uint32_t* bucket = gnu + 4 + bloom * 2;
    const uint32_t* chain = bucket + buckets;
    uint32_t last = 0;
    for (uint32_t i = 0; i < buckets; ++i)
        if (bucket[i] > last) last = bucket[i];
    if (last < first) return first;
    while (!(chain[last - first] & 1)) ++last;
    return last + 1;
}

// Address of an exported symbol of a mapped, unrelocated shared object; 0 when it has none of that name.
uint64_t symbol(uint64_t image, const char* name) {
    auto* elf = reinterpret_cast<const Elf64_Ehdr*>(image);
    if (!image || std::memcmp(elf->e_ident, ELFMAG, SELFMAG) != 0) return 0;
    const Elf64_Phdr* p = headers(elf);
    uint64_t bias = image;
    const Elf64_Dyn* dynamic = nullptr;
    for (int i = 0; i < elf->e_phnum; ++i)
        if (p[i].p_type == PT_LOAD && p[i].p_offset == 0) bias = image - p[i].p_vaddr;
    for (int i = 0; i < elf->e_phnum; ++i)
        if (p[i].p_type == PT_DYNAMIC) dynamic = reinterpret_cast<const Elf64_Dyn*>(bias + p[i].p_vaddr);
    if (!dynamic) return 0;
    const Elf64_Sym* symbols = nullptr;
    const char* strings = nullptr;
    const uint32_t *hash = nullptr, *gnu = nullptr;
    for (; dynamic->d_tag != DT_NULL; ++dynamic) {
        // glibc leaves a vDSO's dynamic section as it is (values relative to the image).
        uint64_t at = dynamic->d_un.d_ptr;
        if (at < bias) at += bias;
        switch (dynamic->d_tag) {
            case DT_SYMTAB:
                symbols = reinterpret_cast<const Elf64_Sym*>(at);
                break;
            case DT_STRTAB:
                strings = reinterpret_cast<const char*>(at);
                break;
            case DT_HASH:
                hash = reinterpret_cast<const uint32_t*>(at);
                break;
            case DT_GNU_HASH:
                gnu = reinterpret_cast<const uint32_t*>(at);
                break;
        }
    }
    if (!symbols || !strings) return 0;
    uint32_t count = count_symbols(hash, gnu);
    for (uint32_t i = 0; i < count; ++i)
        if (symbols[i].st_shndx != SHN_UNDEF && std::strcmp(strings + symbols[i].st_name, name) == 0)
            return bias + symbols[i].st_value;
    return 0;
}

void find_kernel_code() {
    uint64_t image = getauxval(AT_SYSINFO_EHDR);
    if (!image) return;
    auto* elf = reinterpret_cast<const Elf64_Ehdr*>(image);
    const Elf64_Phdr* p = headers(elf);
    for (int i = 0; i < elf->e_phnum; ++i)
        if (p[i].p_type == PT_LOAD) kernel_code = {image, page_up(image + p[i].p_memsz)};
}

}  // namespace

void refill_vdso(uint64_t image) {
    find_kernel_code();
    auto* table = reinterpret_cast<uint64_t*>(symbol(image, "fermata_vdso_table"));
    if (!table) fail("no vDSO image of Fermata at {:#x}: the checkpoint is damaged", image);
    uint64_t kernel = getauxval(AT_SYSINFO_EHDR);
    for (size_t i = 0; i < std::size(kFunctions); ++i) table[i] = kernel ? symbol(kernel, kFunctions[i]) : 0;
    mapped = image;
}

uint64_t map_vdso() {
    if (mapped) return mapped;
    auto* elf = reinterpret_cast<const Elf64_Ehdr*>(fermata_vdso_bytes);
    const Elf64_Phdr* p = headers(elf);
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
Range kernel_vdso() noexcept { return kernel_code; }

}  // namespace fermata::split
