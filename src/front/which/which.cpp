// libfermata-which.so: which libmpi the program gets, by whatever way it asks.
//
// ld.so loads this library as an auditor (rtld-audit(7)) and asks it about every file it is about to open for
// the upper half: DT_NEEDED by name or by path, DT_RPATH and DT_RUNPATH, LD_LIBRARY_PATH, LD_PRELOAD, dlopen
// and dlmopen. A file whose soname is a front's is answered with the front. An MPI library that no front
// stands for ends the job before anything of it runs: the program would be alone in a world of its own, and a
// restart could not bring it back.
//
// It lives in a namespace of its own and has no libc: nothing else is loaded for it.
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>

#include "front/core/line.h"
#include "front/core/sys.h"
#include "front/which/elf_view.h"
#include "split/bridge.h"
#include "split/loader/mpi_name.h"
#include "split/loader/static_tls_name.h"

// ld.so's: where argc lies, and behind it arguments, environment and auxiliary vector.
extern "C" void* __libc_stack_end;

namespace fermata::front::which {
namespace {

constexpr size_t kPath = 4096;
constexpr int kFronts = 32;

char own_directory[kPath];  // with the fronts; "" = unknown, nothing is replaced
// Paths given to ld.so, which keeps what it needs of them, but when is its own matter.
struct Given {
    char path[kPath];
};
Given* given[kFronts];
// The core's record of the lower half, once the core is loaded: right also after a restart.
split::UpperServices* core;

long open_to_read(const char* path) noexcept {
    return sys(SYS_openat, AT_FDCWD, reinterpret_cast<long>(path), O_RDONLY | O_CLOEXEC);
}

split::Bridge* lower_half() noexcept {
    if (core != nullptr && core->bridge != nullptr) return core->bridge;
    // The core has not started, so there was no restart either.
    auto* at = static_cast<uintptr_t*>(__libc_stack_end);
    at += *at + 2;                 // argc, argv, null
    while (*at != 0) ++at;         // environment
    for (++at; *at != 0; at += 2)  // auxiliary vector
        if (*at == split::kAuxvBridge) return reinterpret_cast<split::Bridge*>(at[1]);
    return nullptr;
}

// The variable at the end of the environment was for ld.so, which has read it (split/loader/static_tls.h):
// the program has never had it. Two words become the end of the environment and an entry of the auxiliary
// vector that everybody passes over.
void hide_static_tls() noexcept {
    auto* at = static_cast<uintptr_t*>(__libc_stack_end);
    at += *at + 2;
    size_t variables = 0;
    while (at[variables] != 0) ++variables;
    // (ld.so of glibc 2.36 has put copies in their places.)
    auto is_it = [at](size_t i) {
        return begins(reinterpret_cast<const char*>(at[i]), split::kStaticTlsVariable);
    };
    if (variables < 2 || !is_it(variables - 1) || !is_it(variables - 2)) return;
    at[variables - 2] = 0;
    at[variables - 1] = AT_IGNORE;
}

[[noreturn]] void refuse(const char* path, const char* why) noexcept {
    char text[kPath + 512];
    Line line(text, sizeof text);
    line << "fermata: " << path << why;
    if (split::Bridge* bridge = lower_half()) bridge->fatal(text, 70);  // EX_SOFTWARE, as the core's own
    line << "\n";
    sys(SYS_write, 2, reinterpret_cast<long>(text), static_cast<long>(length_of(text)));
    for (;;) sys(SYS_exit_group, 70);
}

// The folder that holds this library: by the name of what is mapped here, since ld.so does not say.
void find_own_directory() noexcept {
    long fd = open_to_read("/proc/self/maps");
    if (failed(fd)) return;
    const auto here = reinterpret_cast<uintptr_t>(&find_own_directory);
    static char buffer[1 << 16];
    size_t have = 0;
    for (bool end = false; !end;) {
        long n =
            sys(SYS_read, fd, reinterpret_cast<long>(buffer + have), static_cast<long>(sizeof buffer - have));
        end = n <= 0;
        if (!end) have += static_cast<size_t>(n);
        size_t at = 0;
        for (size_t i = 0; i < have; ++i) {
            if (buffer[i] != '\n') continue;
            buffer[i] = 0;
            const char* text = buffer + at;
            at = i + 1;
            uintptr_t bound[2] = {0, 0};
            for (uintptr_t& value : bound) {
                for (; *text != 0 && *text != '-' && *text != ' '; ++text)
                    value =
                        value << 4 | static_cast<uintptr_t>(*text <= '9' ? *text - '0' : *text - 'a' + 10);
                if (*text != 0) ++text;
            }
            if (here < bound[0] || here >= bound[1]) continue;
            while (*text != 0 && *text != '/') ++text;
            size_t length = length_of(text);
            while (length > 0 && text[length] != '/') --length;
            for (size_t k = 0; k < length && length < kPath; ++k) own_directory[k] = text[k];
            sys(SYS_close, fd);
            return;
        }
        for (size_t i = at; i < have; ++i) buffer[i - at] = buffer[i];
        have -= at;
    }
    sys(SYS_close, fd);
}

// The front of that name, as a path that stays; null when there is none.
const char* front_called(const char* soname) noexcept {
    const bool named = begins(soname, "libmpi") || begins(soname, "libopen_mpi.so");
    if (own_directory[0] == 0 || !named) return nullptr;
    for (const char* at = soname; *at != 0; ++at)
        if (*at == '/') return nullptr;
    char path[kPath];
    Line(path, sizeof path) << own_directory << "/" << soname;
    if (failed(sys(SYS_access, reinterpret_cast<long>(path), R_OK))) return nullptr;
    for (Given*& one : given) {
        if (one == nullptr) {
            long at =
                sys(SYS_mmap, 0, sizeof(Given), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            if (failed(at)) return nullptr;
            one = reinterpret_cast<Given*>(at);
            Line(one->path, sizeof one->path) << path;
        }
        if (same(one->path, path)) return one->path;
    }
    return nullptr;
}

// The front that stands for the library file `path`, or null.
const char* front_for_file(const char* path) noexcept {
    long fd = open_to_read(path);
    if (failed(fd)) return nullptr;
    const char* front = nullptr;
    struct stat status;
    if (!failed(sys(SYS_fstat, fd, reinterpret_cast<long>(&status))) && S_ISREG(status.st_mode) &&
        status.st_size >= static_cast<off_t>(sizeof(Elf64_Ehdr))) {
        long at = sys(SYS_mmap, 0, status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (!failed(at)) {
            const char* soname =
                soname_in_file(reinterpret_cast<const char*>(at), static_cast<uint64_t>(status.st_size));
            if (soname != nullptr) front = front_called(soname);
            sys(SYS_munmap, at, status.st_size);
        }
    }
    sys(SYS_close, fd);
    return front;
}

// "$ORIGIN/x" as asked for by `loader`, "" when there is no such word in it.
void without_origin(const char* name, const link_map* loader, char* path) noexcept {
    path[0] = 0;
    const char* rest = begins(name, "$ORIGIN") ? name + 7 : begins(name, "${ORIGIN}") ? name + 9 : nullptr;
    if (rest == nullptr || loader == nullptr) return;
    const char* origin = loader->l_name;
    if (origin == nullptr || *origin == 0) {  // the program itself
        split::Bridge* bridge = lower_half();
        if (bridge == nullptr) return;
        origin = bridge->program;
    }
    size_t length = length_of(origin);
    while (length > 0 && origin[length] != '/') --length;
    if (length >= kPath) return;
    for (size_t i = 0; i < length; ++i) path[i] = origin[i];
    Line(path + length, kPath - length) << rest;
}

bool has_slash(const char* name) noexcept {
    for (; *name != 0; ++name)
        if (*name == '/') return true;
    return false;
}

}  // namespace
}  // namespace fermata::front::which

using namespace fermata::front::which;

#define WHICH_API extern "C" __attribute__((visibility("default")))

WHICH_API unsigned la_version(unsigned version) {
    hide_static_tls();
    find_own_directory();
    return version;
}

WHICH_API char* la_objsearch(const char* name, uintptr_t* cookie, unsigned flag) {
    const char* front = nullptr;
    if (flag != LA_SER_ORIG) {
        front = front_for_file(name);  // one of the places where ld.so looks for a bare name
    } else if (has_slash(name)) {
        char path[kPath];
        // The cookie is the loader's link_map as long as nobody has changed it.
        without_origin(name, cookie != nullptr ? reinterpret_cast<link_map*>(*cookie) : nullptr, path);
        front = front_for_file(path[0] != 0 ? path : name);
    } else {
        front = front_called(name);
    }
    return const_cast<char*>(front != nullptr ? front : name);
}

// Called when an object has been mapped, before it is relocated or any of its code runs.
WHICH_API unsigned la_objopen(link_map* map, Lmid_t space, uintptr_t* cookie) {
    const char* soname = soname_in_memory(map->l_addr, map->l_ld);
    if (soname == nullptr) return 0;
    auto has = [map](const char* name) { return symbol_in_memory(map->l_addr, map->l_ld, name); };
    if (same(soname, "libfermata-front.so") && space == LM_ID_BASE)
        core = reinterpret_cast<fermata::split::UpperServices*>(has("fermata_upper"));
    if (!fermata::split::named_like_mpi(soname) || has(fermata::split::kOnlyInMpi) == 0) return 0;
    if (space != LM_ID_BASE)  // of which la_objsearch does not always hear
        refuse(map->l_name,
               ": the program opens MPI in a namespace of its own (dlmopen), where there is none: open it "
               "with dlopen");
    if (has("fermata_abi_name") == 0)
        refuse(map->l_name,
               " is an MPI library that Fermata has no front for: build the program for Open MPI 4 or 5 "
               "(libmpi.so.40), MPICH's ABI "
               "(libmpi.so.12, libmpich.so.12) or the standard ABI (libmpi_abi.so.1)");
    return 0;
}
