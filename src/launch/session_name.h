// This header knows where Open MPI 5's mpiexec keeps its files: in a directory that is called after its
// number as a process, in some versions after its host and its user, too.
#pragma once

#include <sys/types.h>

namespace fermata::launch {

// Says whether there is such a directory for process `pid` already: a launcher that was killed has left it,
// or one of another container that shares the place has it. The launcher refuses to start then (5.0.7:
// PMIX_ERR_EXISTS; 5.0.9 to 5.0.11: "listener thread failed to start").
bool session_name_is_taken(pid_t pid) noexcept;

}  // namespace fermata::launch
