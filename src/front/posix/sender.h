// The sender of a signal, as the program knows processes (core/ids.h).
#pragma once

#include <signal.h>

#include "front/core/ids.h"
#include "split/ids/sender.h"

namespace fermata::front::posix {

// Called in signal handlers, too: no TLS.
inline void show_sender(int number, siginfo_t* info) noexcept {
    if (info != nullptr && ids_changed() && split::ids::names_sender(number, *info))
        info->si_pid = shown_id(info->si_pid);
}

}  // namespace fermata::front::posix
