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
#include "split/alloc/lower_advice.h"
#include "split/alloc/lower_alloc.h"
#include "split/alloc/shared_segments.h"
#include "split/fds/descriptors.h"

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
// libibverbs keeps memory it registers, also the program's, from children: that is not the program's wish.
EXPORT int madvise(void* address, size_t size, int advice) noexcept {
    note_lower_advice(address, size, advice);
    return int(answer(sys(SYS_madvise, address, size, advice)));
}
EXPORT void* shmat(int id, const void* address, int flags) noexcept {
    return reinterpret_cast<void*>(answer(lower_shmat(id, address, flags)));
}
EXPORT int shmdt(const void* address) noexcept { return int(answer(lower_shmdt(address))); }

// UCX's and Open MPI's memory hooks, and users of calls that libc has no name for, come this way.
EXPORT long syscall(long number, ...) noexcept {
    va_list list;
    va_start(list, number);
    long a[6];
    for (long& value : a) value = va_arg(list, long);
    va_end(list);
    auto pointer = [](long value) { return reinterpret_cast<void*>(value); };
    switch (number) {
        case SYS_mmap:
            return answer(lower_mmap(pointer(a[0]), size_t(a[1]), int(a[2]), int(a[3]), int(a[4]), a[5]));
        case SYS_munmap:
            return answer(lower_munmap(pointer(a[0]), size_t(a[1])));
        case SYS_mremap:
            return answer(lower_mremap(pointer(a[0]), size_t(a[1]), size_t(a[2]), int(a[3]), pointer(a[4])));
        case SYS_shmat:
            return answer(lower_shmat(int(a[0]), pointer(a[1]), int(a[2])));
        case SYS_shmdt:
            return answer(lower_shmdt(pointer(a[0])));
        // Those that give a descriptor.
        case SYS_open:
        case SYS_openat:
        case SYS_socket:
        case SYS_accept:
        case SYS_accept4:
        case SYS_dup:
        case SYS_eventfd2:
        case SYS_epoll_create1:
        case SYS_memfd_create:
        case SYS_userfaultfd:
        case SYS_perf_event_open:
        case SYS_io_uring_setup:
        case SYS_pidfd_open: {
            long result = sys(number, a[0], a[1], a[2], a[3], a[4], a[5]);
            return failed(result) ? answer(result) : raise_descriptor(int(result));
        }
        default:
            return answer(sys(number, a[0], a[1], a[2], a[3], a[4], a[5]));
    }
}
