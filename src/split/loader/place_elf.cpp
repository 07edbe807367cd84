#include "split/loader/place_elf.h"

#include <fcntl.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "files/place.h"
#include "split/address/raw.h"

namespace fermata::split {
namespace {

int protection(uint32_t flags) {
    return (flags & PF_R ? PROT_READ : 0) | (flags & PF_W ? PROT_WRITE : 0) | (flags & PF_X ? PROT_EXEC : 0);
}

}  // namespace

uint64_t reserve(uint64_t size, Range area, uint64_t align, const char* what) {
    long at;
    if (area.empty()) {
        at = raw_mmap(0, size + align, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE);
    } else {
        at = raw_mmap((area.begin() + align - 1) & ~(align - 1), size + align, PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE);
    }
    if (failed(at)) fail("cannot reserve {} KiB for {}: {}", size >> 10, what, std::strerror(int(-at)));
    uint64_t begin = (uint64_t(at) + align - 1) & ~(align - 1);
    if (begin > uint64_t(at)) raw_munmap(uint64_t(at), begin - uint64_t(at));
    if (uint64_t end = uint64_t(at) + size + align; end > begin + size)
        raw_munmap(begin + size, end - begin - size);
    return begin;
}

LoadedElf map_elf(const ElfFile& elf, Range area) {
    uint64_t low = ~0ull, high = 0, align = kPage;
    for (const auto& p : elf.segments) {
        if (p.p_type != PT_LOAD) continue;
        low = std::min(low, page_down(p.p_vaddr));
        high = std::max(high, page_up(p.p_vaddr + p.p_memsz));
        align = std::max<uint64_t>(align, p.p_align);
    }
    if (elf.header.e_type != ET_DYN || low >= high) fail("{} is no position-independent program", elf.path);
    auto [fd, error, why] = files::open_regular(elf.path, O_RDONLY);
    if (!fd) fail("cannot open {}: {}", elf.path, why);
    uint64_t begin = reserve(high - low, area, align, elf.path.c_str());
    uint64_t bias = begin - low;
    LoadedElf loaded;
    loaded.bias = bias;
    loaded.range = Range::sized(begin, high - low);
    loaded.entry = bias + elf.header.e_entry;
    loaded.header_count = elf.header.e_phnum;
    for (const auto& p : elf.segments) {
        if (p.p_type != PT_LOAD) continue;
        uint64_t at = page_down(bias + p.p_vaddr);
        uint64_t shift = bias + p.p_vaddr - at;
        uint64_t file_end = bias + p.p_vaddr + p.p_filesz, end = bias + p.p_vaddr + p.p_memsz;
        if (p.p_filesz) {
            long rc = raw_mmap(at, file_end - at, protection(p.p_flags), MAP_PRIVATE | MAP_FIXED, fd.get(),
                               p.p_offset - shift);
            if (failed(rc)) fail("cannot map {}: {}", elf.path, std::strerror(int(-rc)));
        }
        if (end > file_end && (p.p_flags & PF_W)) {
            // To the end of the page, also behind .bss: ld.so's first allocations come from there and must be
            // zero.
            uint64_t zero_end = page_up(file_end);
            std::memset(reinterpret_cast<void*>(file_end), 0, zero_end - file_end);
            if (page_up(end) > page_up(file_end)) {
                long rc = raw_mmap(page_up(file_end), page_up(end) - page_up(file_end), protection(p.p_flags),
                                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED);
                if (failed(rc)) fail("cannot map {}: {}", elf.path, std::strerror(int(-rc)));
            }
        }
        if (elf.header.e_phoff >= p.p_offset && elf.header.e_phoff < p.p_offset + p.p_filesz)
            loaded.headers = bias + p.p_vaddr + elf.header.e_phoff - p.p_offset;
    }
    return loaded;
}

}  // namespace fermata::split
