// What reaches memory through FS, found in the code of real libraries: the same as objdump finds.
#include "split/thread_pointer/accesses.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <link.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "split/thread_pointer/functions.h"

namespace fermata::split::thread_pointer {
namespace {

struct Loaded {
    MappedObject object;
    std::string file;
};

int collect(dl_phdr_info* info, size_t, void* result) {
    if (std::strstr(info->dlpi_name, "linux-vdso") != nullptr) return 0;
    std::string file = *info->dlpi_name != 0 ? info->dlpi_name : "/proc/self/exe";
    char real[PATH_MAX];
    if (realpath(file.c_str(), real) != nullptr) file = real;
    static_cast<std::vector<Loaded>*>(result)->push_back({MappedObject(*info), file});
    return 0;
}

// This process with what lower halves have.
std::vector<Loaded> objects() {
    setenv("UCX_MEM_MMAP_HOOK_MODE", "none", 1);  // as `fermata run` does: its hooks are written into libc
    for (const char* library : {"libmpi.so.40", "libmpich.so.12", "libmimalloc.so.2", "libsodium.so.23",
                                "libpmix.so.2", "libucp.so.0", "libfabric.so.1"})
        dlopen(library, RTLD_LAZY | RTLD_LOCAL);
    std::vector<Loaded> all;
    dl_iterate_phdr(collect, &all);
    return all;
}

// Addresses in the file of instructions with an FS operand that is not the canary.
std::vector<uint64_t> by_objdump(const std::string& file) {
    std::vector<uint64_t> found;
    std::string command = "objdump -d --no-show-raw-insn '" + file + "'";
    std::unique_ptr<FILE, int (*)(FILE*)> out(popen(command.c_str(), "r"), pclose);
    char line[4096];
    while (std::fgets(line, sizeof line, out.get()) != nullptr) {
        const char* operand = std::strstr(line, "%fs:");
        if (operand == nullptr || line[0] != ' ') continue;
        const char* rest = operand + 4;
        bool canary = std::strncmp(rest, "0x28,", 5) == 0;  // read; ld.so writes it
        if (!canary) found.push_back(std::strtoull(line, nullptr, 16));
    }
    return found;
}

TEST(Accesses, AreThoseThatObjdumpFinds) {
    size_t compared = 0, total = 0;
    for (const Loaded& loaded : objects()) {
        Accesses accesses = find_accesses(loaded.object);
        EXPECT_EQ(accesses.doubt, "");
        struct stat status;
        // objdump takes minutes for MPICH's 37 MB of code.
        if (stat(loaded.file.c_str(), &status) != 0 || status.st_size > (4 << 20)) continue;
        std::vector<uint64_t> expected = by_objdump(loaded.file);
        std::vector<uint64_t> found;
        for (uint64_t prefix : accesses.prefixes) {
            uint64_t at = prefix - loaded.object.base;
            // The instruction may begin with another prefix.
            while (at > 0 && !std::binary_search(expected.begin(), expected.end(), at) &&
                   prefix - loaded.object.base - at < 4)
                --at;
            found.push_back(at);
        }
        std::sort(found.begin(), found.end());
        EXPECT_EQ(found, expected) << loaded.file;
        ++compared;
        total += found.size();
    }
    EXPECT_GE(compared, 10u);
    EXPECT_GT(total, 3000u);  // libc alone has some 2,700
}

}  // namespace
}  // namespace fermata::split::thread_pointer
