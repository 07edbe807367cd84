/* Prints the time at each step, so that two processes that do the same steps write different lines.
 *
 *   ticking STEPS */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char** argv) {
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int step = 0; step < atoi(argv[1]); ++step) {
        int sum;
        MPI_Allreduce(&step, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        usleep(20000);
        if (rank == 0) printf("step %d at %.9f\n", step, MPI_Wtime());
        fflush(stdout);
    }
    MPI_Finalize();
    return 0;
}
