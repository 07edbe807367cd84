#include "split/fds/connections.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "split/address/raw.h"

namespace fermata::split {
namespace {

Connections all{};
bool hidden;

// Which of the descriptors that are open have been counted: an end is come upon again and again.
constexpr size_t kNumbers = 1 << 16;
bool counted[kNumbers];

long option(int fd, int name) noexcept {
    int value = 0;
    socklen_t size = sizeof value;
    return failed(sys(SYS_getsockopt, fd, SOL_SOCKET, name, &value, &size)) ? -1 : value;
}

// Datagrams may be empty; and what is local to a node ends with it.
bool is_connection(int fd) noexcept {
    const long domain = option(fd, SO_DOMAIN);
    return (domain == AF_INET || domain == AF_INET6) && option(fd, SO_TYPE) == SOCK_STREAM;
}

uint32_t* counter(long result) noexcept {
    switch (-result) {
        case 0:
        case ECONNRESET:
        case EPIPE:
        case ECONNREFUSED:
        case ECONNABORTED:
        case ESHUTDOWN:
            return &all.lost;
        case ETIMEDOUT:
        case EHOSTUNREACH:
        case EHOSTDOWN:
        case ENETUNREACH:
        case ENETDOWN:
        case ENETRESET:
            return &all.broken;
        default:
            return nullptr;
    }
}

void count(int fd, uint32_t* one) noexcept {
    if (!__atomic_exchange_n(&counted[size_t(fd) % kNumbers], true, __ATOMIC_ACQ_REL))
        __atomic_fetch_add(one, 1, __ATOMIC_RELEASE);
}

}  // namespace

Connections& connections() noexcept { return all; }

void hide_ends(bool hide) noexcept { __atomic_store_n(&hidden, hide, __ATOMIC_RELEASE); }

void is_new(int fd) noexcept {
    if (fd >= 0) __atomic_store_n(&counted[size_t(fd) % kNumbers], false, __ATOMIC_RELEASE);
}

void note_refusal(int fd, long result) noexcept {
    if (result != 0 && counter(result) != nullptr && is_connection(fd)) count(fd, &all.lost);
}

long end_as_told(int fd, long result, int flags) noexcept {
    uint32_t* one = counter(result);
    if (one == nullptr || !is_connection(fd)) return result;
    count(fd, one);
    if (!__atomic_load_n(&hidden, __ATOMIC_ACQUIRE)) return result;
    const bool settled = one == &all.lost && __atomic_load_n(&all.lost, __ATOMIC_ACQUIRE) ==
                                                 __atomic_load_n(&all.cleared, __ATOMIC_ACQUIRE);
    // A call that waits can be told no such thing.
    const bool waits = (flags & MSG_DONTWAIT) == 0 && (sys(SYS_fcntl, fd, F_GETFL) & O_NONBLOCK) == 0;
    return settled || waits ? result : -EAGAIN;
}

long memory_as_told(long result, uint64_t wanted) noexcept {
    if (result != -ESRCH) return result;
    __atomic_fetch_add(&all.lost, 1, __ATOMIC_RELEASE);
    return __atomic_load_n(&hidden, __ATOMIC_ACQUIRE) ? static_cast<long>(wanted) : result;
}

}  // namespace fermata::split
