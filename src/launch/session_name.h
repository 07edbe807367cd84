// This header knows where Open MPI 5's mpiexec keeps its files: in a directory that is called after its
// number as a process, in some versions after its host and its user, too.
#pragma once

#include <sys/types.h>

#include <set>

namespace fermata::launch {

// Returns the numbers of processes for which there is such a directory already: a launcher that was killed
// has left it, or one of another container that shares the place has it. A launcher with such a number
// refuses to start (5.0.7: PMIX_ERR_EXISTS; 5.0.9 to 5.0.11: "listener thread failed to start").
std::set<pid_t> numbers_with_a_session() noexcept;

}  // namespace fermata::launch
