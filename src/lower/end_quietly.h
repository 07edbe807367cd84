// How ranks end on their launcher's SIGTERM: of ranks that are killed, or leave before the launcher is told
// to end, MPICH's and Open MPI's mpiexec say a lot (docs/internals/job.md, the ranks of a stopped job).
#pragma once

namespace fermata::lower {

// Lets SIGTERM end this process from now on; for a rank whose program stands, and is not to go on.
void end_on_launchers_signal();

// Waits for SIGTERM and leaves by _exit; for a rank that has not gone on yet, of a restart that is refused.
// Ends without the signal as well, after a while. SIGTERM is blocked in every other thread.
[[noreturn]] void end_with_launcher();

// Leaves by _exit(0), whatever the program is doing; for launchers that end when their ranks have.
[[noreturn]] void end_by_itself();

}  // namespace fermata::lower
