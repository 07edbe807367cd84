#pragma once
#include <sys/types.h>

namespace fermata {

// Lets this thread use all processors that the launcher may use: those that the job has on this node.
// Launchers bind a rank before they start it (Open MPI by itself, one core each), and what the rank starts
// would share that one core with a rank that spins. Nothing happens when the launcher's set does not hold
// ours. Safe after fork().
void use_processors_of(pid_t launcher) noexcept;

}  // namespace fermata
