/* Tells from which checkpoint each rank came. Between the phases nothing of MPI is called, so that nothing
 * but what the ranks remember differs between two checkpoints.
 *
 * Each rank makes the file at-PHASE-RANK and waits until go-PHASE is there; with the file `end` all say their
 * phase. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int there(const char* format, int phase) {
    char name[64];
    snprintf(name, sizeof name, format, phase);
    return access(name, F_OK) == 0;
}

int main(int argc, char** argv) {
    int rank, size, phase = 0, phases[64];
    enum { kWords = 1 << 16 };
    int* memory = malloc(kWords * sizeof *memory);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Barrier(MPI_COMM_WORLD);
    for (;;) {
        /* Looked for before `end`: a checkpoint that came between, in the other order, would go on with the
         * next phase, because both files are there then. */
        const int go = !phase || there("go-%d", phase);
        if (there("end", 0)) break;
        if (!go) {
            usleep(2000);
            continue;
        }
        ++phase;
        for (int i = 0; i < kWords; ++i) memory[i] = phase;
        char name[64];
        snprintf(name, sizeof name, "at-%d-%d", phase, rank);
        FILE* file = fopen(name, "w");
        if (file) fclose(file);
    }
    for (int i = 0; i < kWords; ++i)
        if (memory[i] != phase) phase = -1;
    MPI_Gather(&phase, 1, MPI_INT, phases, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("whence");
        for (int i = 0; i < size; ++i) printf(" %d", phases[i]);
        printf("\n");
    }
    MPI_Finalize();
    return 0;
}
