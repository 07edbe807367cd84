// Signals that name the process they come from.
#pragma once

#include <signal.h>

namespace fermata::split::ids {

// Whether `si_pid` means something. Called in signal handlers, too: no TLS.
inline bool names_sender(int number, const siginfo_t& info) noexcept {
    const int code = info.si_code;
    return code == SI_USER || code == SI_QUEUE || code == SI_TKILL || code == SI_MESGQ ||
           (number == SIGCHLD && code > 0);
}

}  // namespace fermata::split::ids
