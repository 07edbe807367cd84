#include "lower/exit_handlers.h"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "split/address/range.h"

namespace fermata::lower {
namespace {

using Function = void (*)(void*);
struct Handler {
    Function function;
    void* argument;
};

// Of the MPI library alone; other libraries' are destructors for the most part. MPI_Init fills it.
std::array<Handler, 16> handlers;
size_t count = 0;

// Where the object lies that has `address`; empty if none has. (dladdr would search its symbols for the
// nearest, which takes a millisecond in a large library.)
split::Range object_at(const void* address) noexcept {
    struct Search {
        uint64_t wanted;
        split::Range found;
    } search{reinterpret_cast<uint64_t>(address), {}};
    auto look = [](dl_phdr_info* info, size_t, void* data) {
        auto* s = static_cast<Search*>(data);
        split::Range all{UINT64_MAX, 0};
        for (int i = 0; i < info->dlpi_phnum; ++i) {
            if (info->dlpi_phdr[i].p_type != PT_LOAD) continue;
            const uint64_t begin = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
            all.begin = std::min(all.begin, begin);
            all.end = std::max(all.end, begin + info->dlpi_phdr[i].p_memsz);
        }
        if (!all.contains(s->wanted)) return 0;
        s->found = all;
        return 1;
    };
    dl_iterate_phdr(look, &search);
    return search.found;
}

void remember(Function function, void* argument) noexcept {
    static const split::Range mpi = object_at(dlsym(RTLD_DEFAULT, "MPI_Init_thread"));
    if (count < handlers.size() && mpi.contains(reinterpret_cast<uint64_t>(function)))
        handlers[count++] = {function, argument};
}

}  // namespace

void run_exit_handlers_of_mpi() noexcept {
    while (count > 0) {
        const Handler last = handlers[--count];
        last.function(last.argument);
    }
}

}  // namespace fermata::lower

// In front of libc's: atexit() of a shared library comes here.
extern "C" int __cxa_atexit(void (*function)(void*), void* argument, void* library) {
    using Real = int(void (*)(void*), void*, void*);
    static Real* const real = reinterpret_cast<Real*>(dlsym(RTLD_NEXT, "__cxa_atexit"));
    fermata::lower::remember(function, argument);
    return real(function, argument, library);
}
