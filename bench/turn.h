/* Batches in turns: several jobs run side by side, and one of them at a time measures a batch while the
 * others sleep, so that all see the same machine. bench/turns.py gives the turns, through FIFOs in the
 * directory that BENCH_TURNS names; without it a job is always on. */
#ifndef FERMATA_BENCH_TURN_H
#define FERMATA_BENCH_TURN_H
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

/* One of the FIFOs; null without turns. */
static FILE* turn_open(const char* name, const char* mode) {
    const char* directory = getenv("BENCH_TURNS");
    char path[4096];
    if (directory == NULL) return NULL;
    snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE* file = fopen(path, mode);
    if (file == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
    return file;
}

/* Before a batch. */
static void turn_wait(void) {
    static FILE* mine;
    if (mine == NULL) {
        int rank;
        char name[16];
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        snprintf(name, sizeof name, "%d", rank);
        mine = turn_open(name, "r");
        if (mine == NULL) return;
        setvbuf(mine, NULL, _IONBF, 0);
    }
    if (fgetc(mine) == EOF) MPI_Abort(MPI_COMM_WORLD, 1);
}

/* What it found: rank 0 says it. */
static void turn_say(const char* what, int bytes, double value) {
    static FILE* out;
    if (out == NULL) out = turn_open("out", "w");
    if (out == NULL) out = stdout;
    fprintf(out, "%s %d %.1f\n", what, bytes, value);
    fflush(out);
}
#endif
