#include "split/memory/break_word.h"

#include <sys/mman.h>

#include <cstring>

#include "split/address/mapped_elf.h"
#include "split/address/window.h"

namespace fermata::split {
namespace {
uint64_t remembered;
}

void remember_break_word(uint64_t address) { remembered = address; }

uint64_t find_break_word(const std::vector<Mapping>& maps) {
    if (remembered) return remembered;
    for (const Mapping& m : maps) {
        if (!upper_range(m.range) || m.offset != 0 || !(m.prot & PROT_READ) ||
            !m.name.ends_with("/libc.so.6"))
            continue;
        if (uint64_t at = symbol_in_memory(m.range.begin(), "__curbrk")) return remembered = at;
    }
    return 0;
}

}  // namespace fermata::split
