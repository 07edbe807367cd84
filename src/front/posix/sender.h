// Who has sent a signal, as the program knows processes (core/ids.h).
#pragma once

#include <signal.h>

#include "front/core/ids.h"

namespace fermata::front::posix {

inline bool names_sender(int number, const siginfo_t& info) noexcept {
    const int code = info.si_code;
    return code == SI_USER || code == SI_QUEUE || code == SI_TKILL || code == SI_MESGQ ||
           (number == SIGCHLD && code > 0);
}

// Called in signal handlers, too: no TLS.
inline void show_sender(int number, siginfo_t* info) noexcept {
    if (info != nullptr && ids_changed() && names_sender(number, *info))
        info->si_pid = shown_id(info->si_pid);
}

}  // namespace fermata::front::posix
