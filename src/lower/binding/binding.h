// The lower side of every MPI function, compiled against one library's own mpi.h.
//
// One static library per MPI library (fermata-binding-openmpi, fermata-binding-mpich); a lower half links
// exactly one of them. Handles cross as words (RealX), everything else with standard-ABI values.
#pragma once

#include <cstdint>

namespace fermata::mpi {
struct Table;
}

namespace fermata::lower {

// The table whose entries call the real library. Valid before MPI_Init.
const mpi::Table& binding_table();
const char* binding_name();  // "openmpi" or "mpich"

// Once, right after MPI_Init_thread: errors return on the predefined communicators, facts are read. Returns a
// standard error class.
int binding_ready();

// Tests between two sched_yield while a spin waits; 0 = only after a long fruitless time. The lower main sets
// a small number when this node has more ranks than cores.
extern volatile uint32_t g_yield;

// MPI_APPNUM where the launcher takes all programs of a job as one (srun); -1: what the library says.
extern int g_program;

}  // namespace fermata::lower
