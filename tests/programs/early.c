/* A program that is slow before it knows MPI: `early MODE`. The rank named by SLOW_RANK waits, until the file
 * HOLD_FILE exists, in MODE loading       the constructor of a library it is linked with (early_library.c):
 * no code of Fermata has run yet before_init   main, before MPI_Init; rank 0 has sent it a message by then
 *     meanwhile     the same, but rank 0 waits for it in a collective call
 * Which rank it is says the launcher. */
#include "hold.h"

int early_library_rank(void);

int main(int argc, char** argv) {
    const char *mode = argv[1], *slow = getenv("SLOW_RANK");
    int slow_rank = slow ? atoi(slow) : -1, rank, size, in = 0, out, sum = 0;
    MPI_Request request = MPI_REQUEST_NULL;
    if (early_library_rank() == slow_rank && strcmp(mode, "loading") != 0) hold_here(1);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (strcmp(mode, "meanwhile") == 0) MPI_Barrier(MPI_COMM_WORLD);
    out = 100 + rank;
    MPI_Isend(&out, 1, MPI_INT, (rank + 1) % size, 3, MPI_COMM_WORLD, &request);
    if (rank == 0 && strcmp(mode, "before_init") == 0) hold_here(1);
    MPI_Recv(&in, 1, MPI_INT, (rank + size - 1) % size, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Allreduce(&in, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(in == 100 + (rank + size - 1) % size);
    hash_bytes(&sum, sizeof sum);
    verdict(mode);
    MPI_Finalize();
    return 0;
}
