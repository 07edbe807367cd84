#include "lower/exit_handlers.h"

#include <dlfcn.h>

#include <array>
#include <cstddef>

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

const void* base_of(const void* address) noexcept {
    Dl_info info{};
    return dladdr(address, &info) != 0 ? info.dli_fbase : nullptr;
}

void remember(Function function, void* argument) noexcept {
    static const void* const mpi = base_of(dlsym(RTLD_DEFAULT, "MPI_Init_thread"));
    if (mpi != nullptr && count < handlers.size() && base_of(reinterpret_cast<const void*>(function)) == mpi)
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
