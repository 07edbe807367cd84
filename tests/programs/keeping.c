/* Preloaded, it is in both halves; in the lower one it does what libibverbs does to memory that is
 * registered: it keeps it from children. */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdint.h>
#include <sys/mman.h>

int MPI_Win_create(void* base, MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm, MPI_Win* win) {
    int lower_half = (uintptr_t)&MPI_Win_create >> 45 != 0;
    if (lower_half && (uintptr_t)base % 4096 == 0) madvise(base, (size_t)size, MADV_DONTFORK);
    return PMPI_Win_create(base, size, unit, info, comm, win);
}
