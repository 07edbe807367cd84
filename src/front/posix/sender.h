// Who has sent a signal, as the program knows processes (core/ids.h).
#pragma once

#include <signal.h>

#include "front/core/ids.h"

namespace fermata::front::posix {

// Called in signal handlers, too: no TLS.
inline void show_sender(int number, siginfo_t* info) noexcept {
    if (info == nullptr || !ids_changed()) return;
    const int code = info->si_code;
    const bool by_process = code == SI_USER || code == SI_QUEUE || code == SI_TKILL || code == SI_MESGQ;
    if (by_process || (number == SIGCHLD && code > 0)) info->si_pid = shown_id(info->si_pid);
}

}  // namespace fermata::front::posix
