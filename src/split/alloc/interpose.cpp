// Layer 1 of lower_alloc.h: the memory functions that the lower executable exports.
//
// An object file of the executable itself, linked with -rdynamic, so that every library of the lower half
// binds to these. They work from the first instruction of the process (mimalloc asks before main): no
// initialised data.
#include <sys/ipc.h>
#include <sys/shm.h>

#include <cerrno>
#include <cstdarg>

#include "split/address/raw.h"
#include "split/address/window.h"
#include "split/alloc/lower_alloc.h"
#include "split/alloc/shared_segments.h"

using namespace fermata::split;

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {
long answer(long result) {
    if (!failed(result)) return result;
    errno = int(-result);
    return -1;
}
}  // namespace

EXPORT void* mmap(void* address, size_t size, int prot, int flags, int fd, off_t offset) noexcept {
    return reinterpret_cast<void*>(answer(lower_mmap(address, size, prot, flags, fd, offset)));
}
EXPORT void* mmap64(void* address, size_t size, int prot, int flags, int fd, off64_t offset) noexcept {
    return reinterpret_cast<void*>(answer(lower_mmap(address, size, prot, flags, fd, offset)));
}
EXPORT int munmap(void* address, size_t size) noexcept { return int(answer(lower_munmap(address, size))); }
EXPORT void* mremap(void* address, size_t old_size, size_t new_size, int flags, ...) noexcept {
    va_list list;
    va_start(list, flags);
    void* target = flags & MREMAP_FIXED ? va_arg(list, void*) : nullptr;
    va_end(list);
    return reinterpret_cast<void*>(answer(lower_mremap(address, old_size, new_size, flags, target)));
}
EXPORT void* shmat(int id, const void* address, int flags) noexcept {
    return reinterpret_cast<void*>(answer(lower_shmat(id, address, flags)));
}
EXPORT int shmdt(const void* address) noexcept { return int(answer(lower_shmdt(address))); }
