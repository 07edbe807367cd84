// This header runs the exit handlers of the real library: the process leaves by the upper half's exit(), so
// the lower one's never comes.
#pragma once

namespace fermata::lower {

// Runs what the MPI library has given to atexit(), and a preloaded one that stands before it, the last first,
// once. MPICH 4.2 and 5.0 say there to their launcher that they are done (PMI's finalize); without that the
// launcher takes the exit for a crash and kills the other ranks.
void run_exit_handlers_of_mpi() noexcept;

}  // namespace fermata::lower
