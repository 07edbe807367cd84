// This file finds out what kind of program this is. The link map tells it of a loaded one, the dynamic
// section of a file.
#include <ctype.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <initializer_list>

#include "split/loader/starters.h"
#include "starter/start.h"

namespace fermata::starter {
namespace {

constexpr off_t kLongestScript = 1 << 20;

struct File {
    const char* data = nullptr;
    size_t size = 0;

    explicit File(const char* path, off_t longest = 0) {
        int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
        if (fd < 0) return;
        struct stat st;
        if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0 &&
            (longest == 0 || st.st_size <= longest)) {
            void* at = mmap(nullptr, static_cast<size_t>(st.st_size), PROT_READ, MAP_PRIVATE, fd, 0);
            if (at != MAP_FAILED) data = static_cast<const char*>(at), size = static_cast<size_t>(st.st_size);
        }
        close(fd);
    }
    ~File() {
        if (data != nullptr) munmap(const_cast<char*>(data), size);
    }
    File(const File&) = delete;
    File& operator=(const File&) = delete;

    template <class T>
    const T* at(uint64_t offset, uint64_t count = 1) const {
        if (offset > size || count > (size - offset) / sizeof(T)) return nullptr;
        return reinterpret_cast<const T*>(data + offset);
    }
};

// The word "mpi" ("Rmpi", "mpi4py", "MPI.COMM_WORLD"), not a part of another ("compile").
bool speaks_of_mpi(const char* text, size_t size) {
    for (size_t i = 0; i + 3 <= size; ++i) {
        if (strncasecmp(text + i, "mpi", 3) != 0) continue;
        bool inside = i > 0 && isalpha(static_cast<unsigned char>(text[i - 1])) != 0;
        if (inside &&
            (text[i - 1] != 'R' || (i > 1 && isalpha(static_cast<unsigned char>(text[i - 2])) != 0)))
            continue;
        return true;
    }
    return false;
}

int is_mpi(dl_phdr_info* info, size_t, void*) { return split::is_mpi_library(info->dlpi_name) ? 1 : 0; }

// Libraries that nearly everything has, and that load nothing of MPI.
bool harmless(const char* path) {
    const char* name = split::last_part(path);
    for (const char* one :
         {"libc.so.6", "libselinux.so.1", "ld-linux-x86-64.so.2", "libdl.so.2", "libpthread.so.0"})
        if (strcmp(name, one) == 0) return true;
    return strstr(path, "linux-vdso") != nullptr || strcmp(path, remembered(split::kStarterLibrary)) == 0;
}

}  // namespace

bool mpi_is_loaded() { return dl_iterate_phdr(is_mpi, nullptr) != 0; }

bool dlopen_is_imported() {
    for (const link_map* map = _r_debug.r_map; map != nullptr; map = map->l_next) {
        if (map->l_name[0] != 0 && harmless(map->l_name)) continue;
        const Elf64_Sym* symbols = nullptr;
        const char* strings = nullptr;
        size_t strings_size = 0;
        for (const Elf64_Dyn* d = map->l_ld; d != nullptr && d->d_tag != DT_NULL; ++d) {
            if (d->d_tag == DT_SYMTAB) symbols = reinterpret_cast<const Elf64_Sym*>(d->d_un.d_ptr);
            if (d->d_tag == DT_STRTAB) strings = reinterpret_cast<const char*>(d->d_un.d_ptr);
            if (d->d_tag == DT_STRSZ) strings_size = d->d_un.d_val;
        }
        if (symbols == nullptr || strings == nullptr || reinterpret_cast<uintptr_t>(strings) < 4096) continue;
        // The name as a whole string in the table: what imports it has it there.
        for (const char* at = strings; at < strings + strings_size; at += strlen(at) + 1)
            if (strcmp(at, "dlopen") == 0 || strcmp(at, "dlmopen") == 0) return true;
    }
    return false;
}

bool mentions_mpi(char** argv) {
    for (size_t i = 1; argv[0] != nullptr && argv[i] != nullptr; ++i) {
        if (speaks_of_mpi(argv[i], strlen(argv[i]))) return true;
        if (argv[i][0] == '-') continue;
        File script(argv[i], kLongestScript);
        if (script.data != nullptr && memchr(script.data, 0, script.size) == nullptr &&
            speaks_of_mpi(script.data, script.size))
            return true;
    }
    return false;
}

bool file_needs_mpi(const char* path) {
    File file(path);
    const auto* header = file.at<Elf64_Ehdr>(0);
    if (header == nullptr || memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
        header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_machine != EM_X86_64)
        return false;
    const auto* segments = file.at<Elf64_Phdr>(header->e_phoff, header->e_phnum);
    if (segments == nullptr) return false;
    auto offset_of = [&](uint64_t address) -> uint64_t {
        for (int i = 0; i < header->e_phnum; ++i)
            if (segments[i].p_type == PT_LOAD && address >= segments[i].p_vaddr &&
                address < segments[i].p_vaddr + segments[i].p_filesz)
                return address - segments[i].p_vaddr + segments[i].p_offset;
        return ~0ull;
    };
    for (int i = 0; i < header->e_phnum; ++i) {
        if (segments[i].p_type != PT_DYNAMIC) continue;
        uint64_t count = segments[i].p_filesz / sizeof(Elf64_Dyn), strings_at = 0, strings_size = 0;
        const auto* entries = file.at<Elf64_Dyn>(segments[i].p_offset, count);
        if (entries == nullptr) return false;
        for (uint64_t k = 0; k < count && entries[k].d_tag != DT_NULL; ++k) {
            if (entries[k].d_tag == DT_STRTAB) strings_at = offset_of(entries[k].d_un.d_ptr);
            if (entries[k].d_tag == DT_STRSZ) strings_size = entries[k].d_un.d_val;
        }
        const char* strings = file.at<char>(strings_at, strings_size);
        if (strings == nullptr || strings_size == 0 || strings[strings_size - 1] != 0) return false;
        for (uint64_t k = 0; k < count && entries[k].d_tag != DT_NULL; ++k)
            if (entries[k].d_tag == DT_NEEDED && entries[k].d_un.d_val < strings_size &&
                split::is_mpi_library(strings + entries[k].d_un.d_val))
                return true;
    }
    return false;
}

}  // namespace fermata::starter
