/* Writes files as solvers do: a file of its own through stdio, one that all ranks write at their places, one
 * that is made under another name and then renamed.
 *
 *   writes_files STEPS */
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

int main(int argc, char** argv) {
    int rank, size;
    char name[64], fresh[64];
    struct stat kept;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    snprintf(name, sizeof name, "steps.%d", rank);
    FILE* own = fopen(name, "w");
    int shared = open("shared", O_WRONLY | O_CREAT, 0644);
    if (own == NULL || shared < 0) return 2;
    for (int step = 0; step < atoi(argv[1]); ++step) {
        int sum, mine = step + rank;
        fprintf(own, "step %d of rank %d\n", step, rank);
        if (step % 7 == 0) fflush(own);
        if (pwrite(shared, &mine, sizeof mine, (step * size + rank) * (off_t)sizeof mine) < 0) return 3;
        MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        usleep(3000);
        if (step % 50 == 0) {
            snprintf(name, sizeof name, "state.%d", rank);
            snprintf(fresh, sizeof fresh, "state.%d.new", rank);
            FILE* state = fopen(fresh, "w");
            if (state == NULL) return 4;
            fprintf(state, "%d %d\n", step, sum);
            fclose(state);
            if (rename(fresh, name) != 0 || stat(name, &kept) != 0) return 5;
            fprintf(own, "%lld bytes kept\n", (long long)kept.st_size);
        }
        if (rank == 0) printf("step %d %d\n", step, sum);
        fflush(stdout);
    }
    fclose(own);
    close(shared);
    MPI_Finalize();
    return 0;
}
