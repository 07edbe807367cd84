// Views of an ELF library that give its soname, and say whether it has a symbol; as a file mapped whole, or
// as ld.so has loaded it. No libc: every byte is compared by hand.
#pragma once

#include <elf.h>

#include <cstddef>
#include <cstdint>

namespace fermata::front::which {

inline bool same(const char* a, const char* b) noexcept {
    for (; *a != 0 && *a == *b; ++a, ++b) {
    }
    return *a == *b;
}
inline bool begins(const char* text, const char* with) noexcept {
    for (; *with != 0; ++text, ++with)
        if (*text != *with) return false;
    return true;
}
inline size_t length_of(const char* text) noexcept {
    size_t n = 0;
    while (text[n] != 0) ++n;
    return n;
}

// DT_SONAME of a library file of `size` bytes that lies at `file` as on disk; null when it has none, or is
// damaged or no library.
const char* soname_in_file(const char* file, uint64_t size) noexcept;

// DT_SONAME of what ld.so has mapped; null when it has none.
const char* soname_in_memory(uint64_t bias, const Elf64_Dyn* dynamic) noexcept;
// Address of `name` in what ld.so has mapped; 0 when it does not define it. By the GNU hash table only, which
// every linker of the last fifteen years writes.
uint64_t symbol_in_memory(uint64_t bias, const Elf64_Dyn* dynamic, const char* name) noexcept;

}  // namespace fermata::front::which
