// Functions of the lower executable on connections, and on the memory of other ranks: as libc's, but who
// writes to somebody who is gone gets EPIPE and no SIGPIPE; and ends of connections and of ranks whose memory
// is wanted are counted, and hidden for a while (connections.h), also from who waits for descriptors.
//
// A job with copies survives a peer's death, and MPI libraries (Open MPI 4.1.4's btl/tcp: writev) write on
// its socket before they see its end. SIGPIPE's action is the application's, by default the end of the
// process.
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <ctime>

#include "split/address/raw.h"
#include "split/fds/connections.h"

using namespace fermata::split;

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT [[noreturn]] void __chk_fail();

namespace {

long answer(long result) {
    if (!failed(result)) return result;
    errno = int(-result);
    return -1;
}

long wrote(int fd, long result, int flags = 0) {
    return answer(failed(result) ? end_as_told(fd, result, flags) : result);
}

// Nothing where something was asked for is the end.
bool is_end(long result, size_t asked) { return failed(result) || (result == 0 && asked != 0); }

long has_read(int fd, long result, size_t asked, int flags = 0) {
    return answer(is_end(result, asked) ? end_as_told(fd, result, flags) : result);
}

// Takes out the descriptors of hidden ends: each round of libevent's loop (Open MPI 5) goes on as long as one
// of them has something to read. libevent notes the descriptor with an event; others note addresses, which
// are no descriptors. A call that was to wait comes back a little later, and is done again.
long without_hidden_ends(epoll_event* events, long count, bool waits) {
    long left = 0;
    for (long i = 0; i < count; ++i)
        if (events[i].data.u64 > INT32_MAX || !end_is_hidden(events[i].data.fd)) events[left++] = events[i];
    if (count <= 0 || left > 0 || !waits) return count <= 0 ? count : left;
    const timespec rest{0, 1'000'000};
    sys(SYS_nanosleep, &rest, nullptr);
    return -EINTR;
}

long took(long result, const iovec* parts, unsigned long count) {
    uint64_t wanted = 0;
    for (unsigned long i = 0; result < 0 && i < count; ++i) wanted += parts[i].iov_len;
    return answer(memory_as_told(result, wanted));
}

}  // namespace

EXPORT ssize_t process_vm_readv(pid_t pid, const iovec* to, unsigned long parts, const iovec* from,
                                unsigned long count, unsigned long flags) {
    return took(sys(SYS_process_vm_readv, pid, to, parts, from, count, flags), to, parts);
}
EXPORT ssize_t process_vm_writev(pid_t pid, const iovec* from, unsigned long parts, const iovec* to,
                                 unsigned long count, unsigned long flags) {
    return took(sys(SYS_process_vm_writev, pid, from, parts, to, count, flags), from, parts);
}

EXPORT ssize_t write(int fd, const void* from, size_t size) {
    long result = sys(SYS_sendto, fd, from, size, MSG_NOSIGNAL, nullptr, 0);
    if (result == -ENOTSOCK) return answer(sys(SYS_write, fd, from, size));
    return wrote(fd, result);
}
EXPORT ssize_t writev(int fd, const iovec* parts, int count) {
    msghdr message{};
    message.msg_iov = const_cast<iovec*>(parts);
    message.msg_iovlen = size_t(count);
    long result = sys(SYS_sendmsg, fd, &message, MSG_NOSIGNAL);
    // EMSGSIZE: too many parts, and writev has its own word for that.
    if (result == -ENOTSOCK || result == -EMSGSIZE) return answer(sys(SYS_writev, fd, parts, count));
    return wrote(fd, result);
}
EXPORT ssize_t send(int fd, const void* from, size_t size, int flags) {
    const long result = sys(SYS_sendto, fd, from, size, flags | MSG_NOSIGNAL, nullptr, 0);
    return answer(failed(result) ? end_as_sent(fd, result, flags, size) : result);
}
EXPORT ssize_t sendto(int fd, const void* from, size_t size, int flags, const sockaddr* to,
                      socklen_t length) {
    return wrote(fd, sys(SYS_sendto, fd, from, size, flags | MSG_NOSIGNAL, to, length), flags);
}
EXPORT ssize_t sendmsg(int fd, const msghdr* message, int flags) {
    return wrote(fd, sys(SYS_sendmsg, fd, message, flags | MSG_NOSIGNAL), flags);
}
EXPORT int sendmmsg(int fd, mmsghdr* messages, unsigned count, int flags) {
    return int(wrote(fd, sys(SYS_sendmmsg, fd, messages, count, flags | MSG_NOSIGNAL), flags));
}

EXPORT ssize_t read(int fd, void* into, size_t size) {
    return has_read(fd, sys(SYS_read, fd, into, size), size);
}
EXPORT ssize_t readv(int fd, const iovec* parts, int count) {
    return has_read(fd, sys(SYS_readv, fd, parts, count), size_t(count));
}
EXPORT ssize_t recv(int fd, void* into, size_t size, int flags) {
    const long result = sys(SYS_recvfrom, fd, into, size, flags, nullptr, nullptr);
    return answer(is_end(result, size) ? end_as_received(fd, result, flags) : result);
}
EXPORT ssize_t recvfrom(int fd, void* into, size_t size, int flags, sockaddr* from, socklen_t* length) {
    return has_read(fd, sys(SYS_recvfrom, fd, into, size, flags, from, length), size, flags);
}
EXPORT ssize_t recvmsg(int fd, msghdr* message, int flags) {
    return has_read(fd, sys(SYS_recvmsg, fd, message, flags), message->msg_iovlen, flags);
}
EXPORT int recvmmsg(int fd, mmsghdr* messages, unsigned count, int flags, timespec* until) {
    return int(has_read(fd, sys(SYS_recvmmsg, fd, messages, count, flags, until), 0, flags));
}
// -D_FORTIFY_SOURCE turns the calls above into these.
EXPORT ssize_t __read_chk(int fd, void* into, size_t size, size_t room) {
    if (size > room) __chk_fail();
    return read(fd, into, size);
}
EXPORT ssize_t __recv_chk(int fd, void* into, size_t size, size_t room, int flags) {
    if (size > room) __chk_fail();
    return recv(fd, into, size, flags);
}
EXPORT ssize_t __recvfrom_chk(int fd, void* into, size_t size, size_t room, int flags, sockaddr* from,
                              socklen_t* length) {
    if (size > room) __chk_fail();
    return recvfrom(fd, into, size, flags, from, length);
}

EXPORT int epoll_wait(int fd, epoll_event* events, int most, int time) {
    return int(answer(without_hidden_ends(events, sys(SYS_epoll_wait, fd, events, most, time), time != 0)));
}

EXPORT int connect(int fd, const sockaddr* to, socklen_t length) {
    const long result = sys(SYS_connect, fd, to, length);
    if (!failed(result) || result == -EINPROGRESS)
        is_new(fd);
    else
        note_refusal(fd, result);
    return int(answer(result));
}
// Where a connection that was begun and not waited for has failed, it says so here.
EXPORT int getsockopt(int fd, int level, int name, void* value, socklen_t* size) noexcept {
    const long result = sys(SYS_getsockopt, fd, level, name, value, size);
    if (!failed(result) && level == SOL_SOCKET && name == SO_ERROR && *size == sizeof(int))
        note_refusal(fd, -long{*static_cast<const int*>(value)});
    return int(answer(result));
}
