/* Preloaded: a profiling library, which counts what the program sends (MPI-4.0, 15.2). */
#include <mpi.h>

static int sends;
int profiled_sends(void) { return sends; }

int MPI_Send(const void* buf, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm) {
    ++sends;
    return PMPI_Send(buf, count, type, dest, tag, comm);
}
