// use_processors_of() gives a process that a rank has started the processors of the launcher.
#pragma once
#include <sys/types.h>

namespace fermata {

// Lets this thread use all processors that the launcher may use: those that the job has on this node.
// Launchers bind a rank before they start it (Open MPI does so by default, to one core), and a child of the
// rank would share that core with a rank that spins. Nothing happens when the launcher's set does not contain
// this thread's set. May be called after fork().
void use_processors_of(pid_t launcher) noexcept;

}  // namespace fermata
