// The warden of this rank: the batch system's process that started it, and whose signals mean the job rather
// than the program. Slurm's slurmstepd signals what it has started, and what that has started.
#pragma once

#include <signal.h>

#include <vector>

#include "split/bridge.h"

namespace fermata::split::process {

// The one of this process; looked for at the first call.
Warden& the_warden();
// Looks at the names of the processes above this one.
int find_warden();

// Was this signal sent by the warden, as a warning?
bool is_warning(const siginfo_t& info);
// Signals that were held back since the last call.
std::vector<int> held_signals();

}  // namespace fermata::split::process
