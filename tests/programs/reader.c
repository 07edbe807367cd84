/* Reads numbers from standard input, line by line, while it computes: reader SECONDS. Rank 0 reads; every 100
 * lines all ranks sum up, and every 500 there is a line of results. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

int main(int argc, char** argv) {
    char line[256];
    long lines = 0;
    long long total = 0;
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    /* SECONDS for the 20,000 lines that the test gives. */
    struct timespec pause = {0, (long)(atof(argv[1]) * 1e9 / 200)};
    for (int more = 1; more;) {
        long long value = 0, sum = 0;
        for (int i = 0; rank == 0 && i < 100 && more; ++i) {
            more = fgets(line, sizeof line, stdin) != NULL;
            if (more) value = value * 31 + atoll(line), ++lines;
        }
        MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
        value += rank;
        MPI_Allreduce(&value, &sum, 1, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
        total = total * 31 + sum;
        if (rank == 0 && lines % 500 == 0) {
            printf("reader %ld %lld\n", lines, total);
            fflush(stdout);
        }
        if (rank == 0) nanosleep(&pause, NULL);
    }
    if (rank == 0) printf("reader end %ld %lld\n", lines, total);
    MPI_Finalize();
    return 0;
}
