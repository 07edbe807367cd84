// Answers for children that have ended with an earlier process of this rank, and that the program asks for in
// this one (split/ended_children.h). Any context, signal handlers and children of a fork too: no TLS, no
// libc, general registers only.
#pragma once

#include "front/core/ids.h"
#include "split/ended_children.h"

namespace fermata::front {

inline constinit split::EndedChildren ended{};

inline bool asks_for_ended() noexcept { return ended.any() && ended.process == real_pid(); }

inline void copy_usage(const rusage& from, rusage* to) noexcept {
    const void* source = &from;
    unsigned long size = sizeof from;
    if (to != nullptr) asm volatile("rep movsb" : "+D"(to), "+S"(source), "+c"(size) : : "memory");
}

// As wait4, at once: the child's number, 0: there is none here.
inline int ended_by_wait4(int target, int* status, rusage* usage) noexcept {
    if (!asks_for_ended()) return 0;
    idtype_t type = target > 0 ? P_PID : target == -1 ? P_ALL : P_PGID;
    const int id = target > 0    ? target
                   : target == 0 ? shown_group(static_cast<int>(sys(SYS_getpgid, 0)))
                                 : -target;
    int found = 0;
    split::ask_ended(ended, type, id, false, [&](const split::EndedChild& child) {
        if (status != nullptr) *status = split::wait_status(child);
        copy_usage(child.usage, usage);
        found = child.pid;
    });
    return found;
}

// As waitid, at once. False: there is none here.
inline bool ended_by_waitid(idtype_t type, int id, siginfo_t* info, int options, rusage* usage) noexcept {
    if ((options & WEXITED) == 0 || !asks_for_ended()) return false;
    if (type == P_PGID && id == 0) id = shown_group(static_cast<int>(sys(SYS_getpgid, 0)));
    return split::ask_ended(ended, type, id, (options & WNOWAIT) != 0, [&](const split::EndedChild& child) {
        copy_usage(child.usage, usage);
        if (info == nullptr) return;
        info->si_signo = SIGCHLD;
        info->si_errno = 0;
        info->si_code = child.code;
        info->si_pid = child.pid;
        info->si_uid = child.user;
        info->si_status = child.status;
    });
}

}  // namespace fermata::front
