// How many threads of the application will call MPI? MPI starts before the application, so it is decided by
// what the program imports.
#pragma once

#include <string>

#include "lower/mpi_start.h"

namespace fermata::lower {

// `many` unless neither the program nor a library it loads at its start mentions MPI_Init_thread: the real
// library then needs no locks. Interpreters load their MPI module later, so for a program without MPI of its
// own the answer is `many`. FERMATA_THREADS=one|many overrides. `program` empty (restart): from
// FERMATA_THREADS, else `many`.
ThreadNeed thread_need(const std::string& program);

}  // namespace fermata::lower
