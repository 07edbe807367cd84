// The end of a rank that has not gone on yet, of a restart that is refused.
#pragma once

namespace fermata::lower {

// Waits for the launcher's SIGTERM and leaves by _exit: of ranks that are killed, or leave before the
// launcher is told to end, MPICH's and Open MPI's mpiexec say a lot (docs/internals/job.md, the ranks of a
// stopped job). Ends without the signal as well, after a while. SIGTERM is blocked in every other thread.
[[noreturn]] void end_with_launcher();

}  // namespace fermata::lower
