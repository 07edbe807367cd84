/* Reads the counter of the processor at each step, which goes through no library: two processes that do the
 * same steps do not get the same. Writes the number, or sends it.
 *
 *   ticking STEPS writes|sends */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <x86intrin.h>

int main(int argc, char** argv) {
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    const int sends = argc > 2 && strcmp(argv[2], "sends") == 0;
    for (int step = 0; step < atoi(argv[1]); ++step) {
        const unsigned long long ticks = __rdtsc(), own = sends ? ticks : (unsigned long long)step;
        unsigned long long all;
        MPI_Allreduce(&own, &all, 1, MPI_UNSIGNED_LONG_LONG, MPI_BXOR, MPI_COMM_WORLD);
        usleep(20000);
        if (rank == 0) printf("step %d %llu\n", step, sends ? 0 : ticks);
        fflush(stdout);
    }
    MPI_Finalize();
    return 0;
}
