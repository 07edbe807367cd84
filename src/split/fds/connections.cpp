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
bool hidden_in_handshakes;

// Which of the descriptors that are open have been counted: an end is come upon again and again.
constexpr size_t kNumbers = 1 << 16;
bool counted[kNumbers];
// The counter by which an end of theirs was counted that was hidden.
const uint32_t* untold[kNumbers];
bool any_untold;

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

// Ends that are counted by this one are hidden as long as some that were lost may be a rank's.
bool hides(const uint32_t* one) noexcept {
    return __atomic_load_n(&hidden, __ATOMIC_ACQUIRE) &&
           (one != &all.lost ||
            __atomic_load_n(&all.lost, __ATOMIC_ACQUIRE) != __atomic_load_n(&all.cleared, __ATOMIC_ACQUIRE));
}

}  // namespace

Connections& connections() noexcept { return all; }

void hide_ends(bool hide, bool handshakes) noexcept {
    __atomic_store_n(&hidden_in_handshakes, handshakes, __ATOMIC_RELEASE);
    __atomic_store_n(&hidden, hide, __ATOMIC_RELEASE);
}

void is_new(int fd) noexcept {
    if (fd < 0) return;
    __atomic_store_n(&counted[size_t(fd) % kNumbers], false, __ATOMIC_RELEASE);
    __atomic_store_n(&untold[size_t(fd) % kNumbers], nullptr, __ATOMIC_RELEASE);
}

void note_refusal(int fd, long result) noexcept {
    if (result != 0 && counter(result) != nullptr && is_connection(fd)) count(fd, &all.lost);
}

long end_as_told(int fd, long result, int flags) noexcept {
    uint32_t* one = counter(result);
    if (one == nullptr || !is_connection(fd)) return result;
    count(fd, one);
    if (!hides(one)) return result;
    // A call that waits can be told no such thing.
    if ((flags & MSG_DONTWAIT) == 0 && (sys(SYS_fcntl, fd, F_GETFL) & O_NONBLOCK) == 0) return result;
    __atomic_store_n(&untold[size_t(fd) % kNumbers], one, __ATOMIC_RELEASE);
    __atomic_store_n(&any_untold, true, __ATOMIC_RELEASE);
    return -EAGAIN;
}

long end_as_received(int fd, long result, int flags) noexcept {
    if (__atomic_load_n(&hidden_in_handshakes, __ATOMIC_ACQUIRE)) return end_as_told(fd, result, flags);
    uint32_t* one = counter(result);
    if (one != nullptr && is_connection(fd)) count(fd, one);
    return result;
}

long end_as_sent(int fd, long result, int flags, uint64_t size) noexcept {
    const long told = end_as_told(fd, result, flags);
    const bool hides_it = told == -EAGAIN && result != -EAGAIN;
    return hides_it && !__atomic_load_n(&hidden_in_handshakes, __ATOMIC_ACQUIRE) ? static_cast<long>(size)
                                                                                 : told;
}

bool end_is_hidden(int fd) noexcept {
    if (fd < 0 || !__atomic_load_n(&any_untold, __ATOMIC_ACQUIRE)) return false;
    const uint32_t* one = __atomic_load_n(&untold[size_t(fd) % kNumbers], __ATOMIC_ACQUIRE);
    return one != nullptr && hides(one);
}

long memory_as_told(long result, uint64_t wanted) noexcept {
    if (result != -ESRCH) return result;
    __atomic_fetch_add(&all.lost, 1, __ATOMIC_RELEASE);
    return __atomic_load_n(&hidden, __ATOMIC_ACQUIRE) ? static_cast<long>(wanted) : result;
}

}  // namespace fermata::split
