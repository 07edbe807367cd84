// Warnings of the batch system's that come to the program: held back, and told to the agent.
//
// Slurm sends the ranks of a step the first SIGTERM of a preemption, of `scancel` and of a time limit, and
// what
// `--signal` without B: asks for. It would end the program before a checkpoint can be taken; to `fermata run`
// the same signal means a checkpoint. So a SIGTERM whose sender is the warden (split/bridge.h) never reaches
// the program, and its SIGUSR1 only where the program has a handler for it.
#pragma once

#include <signal.h>

#include "front/core/bridge.h"

namespace fermata::front::posix {

// At the start of the program and after a restart, before any thread of it runs. With either thread pointer.
void watch_warden() noexcept;

inline bool is_watched(int number) noexcept {
    return bridge() != nullptr && bridge()->warden != nullptr && bridge()->warden->pid != 0 && number > 0 &&
           number <= 64 && (split::kWarnings >> (number - 1) & 1) != 0;
}

// Called in a signal handler: no TLS. `by_default`: the program has no handler.
inline bool hold_back(int number, const siginfo_t* info, bool by_default) noexcept {
    if (!is_watched(number) || info->si_code != SI_USER || info->si_pid != bridge()->warden->pid)
        return false;
    if (number != SIGTERM && !by_default) return false;
    __atomic_fetch_or(&bridge()->warden->held, uint64_t{1} << (number - 1), __ATOMIC_ACQ_REL);
    bridge()->poke_agent();
    return true;
}

}  // namespace fermata::front::posix
