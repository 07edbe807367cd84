// The auditor's view of ELF files: against the loader's own, and of files that are damaged.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <link.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <random>

#include "front/which/elf_view.h"
#include "split/loader/elf_file.h"
#include "split/loader/mpi_name.h"

namespace which = fermata::front::which;

namespace {

std::string bytes_of(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

// A copy of just that size, so that a sanitizer sees every byte too many.
std::string soname_of(const std::string& bytes) {
    auto copy = std::make_unique<char[]>(bytes.size());
    std::copy(bytes.begin(), bytes.end(), copy.get());
    const char* name = which::soname_in_file(copy.get(), bytes.size());
    return name ? name : "";
}

link_map* map_of(void* library) {
    link_map* map = nullptr;
    EXPECT_EQ(dlinfo(library, RTLD_DI_LINKMAP, &map), 0);
    return map;
}

}  // namespace

TEST(Which, SonamesOfFiles) {
    for (const char* name : {"libc.so.6", "libm.so.6", "libstdc++.so.6"}) {
        void* library = dlopen(name, RTLD_NOW);
        ASSERT_NE(library, nullptr);
        EXPECT_EQ(soname_of(bytes_of(map_of(library)->l_name)), name);
        EXPECT_STREQ(which::soname_in_memory(map_of(library)->l_addr, map_of(library)->l_ld), name);
    }
    EXPECT_EQ(soname_of(bytes_of("/proc/self/exe")), "");
    EXPECT_EQ(soname_of(""), "");
    EXPECT_EQ(soname_of("#!/bin/sh\n" + std::string(200, ' ')), "");
}

TEST(Which, DamagedFilesHaveNone) {
    const std::string whole = bytes_of(map_of(dlopen("libm.so.6", RTLD_NOW))->l_name);
    fermata::split::ElfFile file;
    ASSERT_EQ(file.read(map_of(dlopen("libm.so.6", RTLD_NOW))->l_name), "");
    for (size_t part = 0; part < 64; ++part) soname_of(whole.substr(0, part * 24));
    std::mt19937 random(20261126);
    int kept = 0;
    for (int round = 0; round < 2000; ++round) {
        std::string damaged = whole.substr(0, 4096);  // its tables; what they point at is cut off
        if (round % 2) damaged = whole;
        const size_t headers = sizeof(Elf64_Ehdr) + file.segments.size() * sizeof(Elf64_Phdr);
        for (int flips = 0; flips < 3; ++flips) damaged[random() % headers] = static_cast<char>(random());
        kept += soname_of(damaged) == "libm.so.6";
    }
    EXPECT_LT(kept, 2000);
}

TEST(Which, SymbolsInMemory) {
    void* library = dlopen("libm.so.6", RTLD_NOW);
    link_map* map = map_of(library);
    EXPECT_EQ(which::symbol_in_memory(map->l_addr, map->l_ld, "lgamma"),
              reinterpret_cast<uint64_t>(dlsym(library, "lgamma")));
    for (const char* absent : {"", "PMPI_Init", "lgamm", "lgammaa"})
        EXPECT_EQ(which::symbol_in_memory(map->l_addr, map->l_ld, absent), 0u) << absent;
}

TEST(Which, NamesOfMpi) {
    for (const char* name :
         {"libmpi.so.20", "libmpich.so.10", "libmpi_mt.so.4", "libmpi-gcc.so", "libmpich_intel.so.3"})
        EXPECT_TRUE(fermata::split::named_like_mpi(name)) << name;
    for (const char* name :
         {"", "libm.so.6", "libmpitrampoline.so", "libmpifort.so.12", "libmpicxx.so.12", "mpi.so"})
        EXPECT_FALSE(fermata::split::named_like_mpi(name)) << name;
}
