// signal_set() makes a set of signals.
#pragma once

#include <signal.h>

#include <initializer_list>

namespace fermata {

inline sigset_t signal_set(std::initializer_list<int> signals) {
    sigset_t set;
    sigemptyset(&set);
    for (int signal : signals) sigaddset(&set, signal);
    return set;
}

}  // namespace fermata
