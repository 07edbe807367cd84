/* Batches in turns: several jobs run side by side, and one of them at a time measures a batch while the
 * others sleep, so that all see the same machine. bench/turns.py gives the turns, through FIFOs in the
 * directory that BENCH_TURNS names; without it a job is always on. */
#ifndef FERMATA_BENCH_TURN_H
#define FERMATA_BENCH_TURN_H
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

/* Before a batch. */
static void turn_wait(void) {
    static FILE* mine;
    const char* directory = getenv("BENCH_TURNS");
    if (directory == NULL) return;
    if (mine == NULL) {
        int rank;
        char path[4096];
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        snprintf(path, sizeof path, "%s/%d", directory, rank);
        mine = fopen(path, "r");
        if (mine == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
        setvbuf(mine, NULL, _IONBF, 0);
    }
    if (fgetc(mine) == EOF) MPI_Abort(MPI_COMM_WORLD, 1);
}

/* What it found: rank 0 says it. */
static void turn_say(const char* what, int bytes, double value) {
    static FILE* out;
    const char* directory = getenv("BENCH_TURNS");
    if (out == NULL && directory != NULL) {
        char path[4096];
        snprintf(path, sizeof path, "%s/out", directory);
        out = fopen(path, "w");
        if (out == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
    }
    fprintf(out != NULL ? out : stdout, "%s %d %.1f\n", what, bytes, value);
    fflush(out != NULL ? out : stdout);
}
#endif
