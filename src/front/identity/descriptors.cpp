// Descriptors that name processes: owners of signals, holders of locks, peers of Unix sockets, terminals.
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <termios.h>
#include <unistd.h>

#include "front/core/ids.h"
#include "front/posix/answer.h"
#include "front/posix/next.h"

namespace fermata::front::identity {
namespace {

using posix::answer;
using posix::Next;

Next<int(int, int, void*)> next_fcntl{"fcntl"};
Next<ssize_t(int, msghdr*, int)> next_recvmsg{"recvmsg"};
Next<ssize_t(int, const msghdr*, int)> next_sendmsg{"sendmsg"};

__attribute__((constructor)) void find_all() {
    next_fcntl.find();
    next_recvmsg.find();
    next_sendmsg.find();
}

// As the kernel takes and gives owners (f_owner_ex).
int owner_id(const f_owner_ex& owner, int (*of_process)(int), int (*of_group)(int)) {
    return owner.type == F_OWNER_PGRP ? of_group(owner.pid) : of_process(owner.pid);
}

int fcntl_of_numbers(int fd, int command, void* argument) {
    switch (command) {
        case F_SETOWN: {
            const auto owner = static_cast<int>(reinterpret_cast<intptr_t>(argument));
            return next_fcntl(fd, command,
                              reinterpret_cast<void*>(static_cast<intptr_t>(real_target(owner))));
        }
        case F_GETOWN:
            return shown_target(next_fcntl(fd, command, argument));
        case F_SETOWN_EX: {
            f_owner_ex owner = *static_cast<const f_owner_ex*>(argument);
            owner.pid = owner_id(owner, real_id, real_group);
            return next_fcntl(fd, command, &owner);
        }
        case F_GETOWN_EX: {
            const int result = next_fcntl(fd, command, argument);
            auto* owner = static_cast<f_owner_ex*>(argument);
            if (result == 0 && owner->pid != 0) owner->pid = owner_id(*owner, shown_id, shown_group);
            return result;
        }
        case F_GETLK: {
            const int result = next_fcntl(fd, command, argument);
            auto* lock = static_cast<struct flock*>(argument);
            if (result == 0 && lock->l_type != F_UNLCK) lock->l_pid = shown_id(lock->l_pid);
            return result;
        }
        default:
            return next_fcntl(fd, command, argument);
    }
}

ucred* sender_in(cmsghdr* part) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_CREDENTIALS ||
        part->cmsg_len < CMSG_LEN(sizeof(ucred)))
        return nullptr;
    return reinterpret_cast<ucred*>(CMSG_DATA(part));
}

// The number in a message's credentials, changed; whether there were any.
bool change_sender(msghdr* message, int (*change)(int)) {
    bool any = false;
    if (message == nullptr || message->msg_control == nullptr) return any;
    for (cmsghdr* part = CMSG_FIRSTHDR(message); part != nullptr; part = CMSG_NXTHDR(message, part))
        if (ucred* sender = sender_in(part)) {
            sender->pid = change(sender->pid);
            any = true;
        }
    return any;
}

}  // namespace
}  // namespace fermata::front::identity

using namespace fermata;
using namespace fermata::front;
using namespace fermata::front::identity;

#define FERMATA_FCNTL(name)                                                                                 \
    FERMATA_INTERPOSE int name(int fd, int command, ...) {                                                  \
        va_list list;                                                                                       \
        va_start(list, command);                                                                            \
        void* argument = va_arg(list, void*);                                                               \
        va_end(list);                                                                                       \
        return ids_changed() ? fcntl_of_numbers(fd, command, argument) : next_fcntl(fd, command, argument); \
    }
FERMATA_FCNTL(fcntl)
FERMATA_FCNTL(fcntl64)
FERMATA_FCNTL(__fcntl)

FERMATA_INTERPOSE int getsockopt(int fd, int level, int option, void* value, socklen_t* size) noexcept {
    const long result = answer(sys(SYS_getsockopt, fd, level, option, value, size));
    if (result == 0 && ids_changed() && level == SOL_SOCKET && option == SO_PEERCRED &&
        *size >= sizeof(pid_t)) {
        auto* peer = static_cast<ucred*>(value);
        peer->pid = shown_id(peer->pid);
    }
    return static_cast<int>(result);
}
FERMATA_INTERPOSE ssize_t recvmsg(int fd, msghdr* message, int flags) {
    const ssize_t result = next_recvmsg(fd, message, flags);
    if (result >= 0 && ids_changed()) change_sender(message, shown_id);
    return result;
}
FERMATA_INTERPOSE ssize_t sendmsg(int fd, const msghdr* message, int flags) {
    if (!ids_changed() || message == nullptr || message->msg_control == nullptr)
        return next_sendmsg(fd, message, flags);
    // The program's message stays as it is; one with so much beside its bytes has no room here, and none of
    // the kernel's either (net.core.optmem_max).
    alignas(cmsghdr) char room[4096];
    msghdr with_real = *message;
    if (message->msg_controllen > sizeof room) return next_sendmsg(fd, message, flags);
    memcpy(room, message->msg_control, message->msg_controllen);
    with_real.msg_control = room;
    return next_sendmsg(fd, change_sender(&with_real, real_id) ? &with_real : message, flags);
}

FERMATA_INTERPOSE pid_t tcgetpgrp(int fd) noexcept {
    int group = 0;
    return answer(sys(SYS_ioctl, fd, TIOCGPGRP, &group)) == 0 ? shown_group(group) : -1;
}
FERMATA_INTERPOSE int tcsetpgrp(int fd, pid_t group) noexcept {
    const int real = real_group(group);
    return static_cast<int>(answer(sys(SYS_ioctl, fd, TIOCSPGRP, &real)));
}
FERMATA_INTERPOSE pid_t tcgetsid(int fd) noexcept {
    int session = 0;
    return answer(sys(SYS_ioctl, fd, TIOCGSID, &session)) == 0 ? shown_session(session) : -1;
}
