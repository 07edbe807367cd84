#include "lower/exit_handlers.h"

#include <dlfcn.h>
#include <link.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/page.h"
#include "base/range.h"

namespace fermata::lower {
namespace {

using Function = void (*)(void*);
struct Handler {
    Function function;
    void* argument;
};

// Handlers of the MPI library, and of a preloaded one that stands before it; other libraries' are destructors
// for the most part. MPI_Init fills it.
std::array<Handler, 16> handlers;
size_t count = 0;

// Where the object lies that has `address`; empty if none has. (dladdr would search its symbols for the
// nearest, which takes a millisecond in a large library.)
Range object_at(void* address) noexcept {
    dl_find_object found;
    if (_dl_find_object(address, &found) != 0) return {};
    return {reinterpret_cast<uint64_t>(found.dlfo_map_start), reinterpret_cast<uint64_t>(found.dlfo_map_end)};
}

void remember(Function function, void* argument) noexcept {
    static const Range before = object_at(dlsym(RTLD_DEFAULT, "MPI_Init_thread"));
    static const Range mpi = object_at(dlsym(RTLD_DEFAULT, "PMPI_Init_thread"));
    const auto at = reinterpret_cast<uint64_t>(function);
    if (count < handlers.size() && (mpi.contains(at) || before.contains(at)))
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
