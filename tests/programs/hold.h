/* A point at which a test takes its checkpoint: rank 0 says READY once every rank is here, then all wait,
 * outside MPI, until the file named by HOLD_FILE exists. Without HOLD_FILE (native run) it returns at once.
 */
#ifndef FERMATA_TESTS_HOLD_H
#define FERMATA_TESTS_HOLD_H
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What the application had before it and what it does after it must agree to the last bit. */
#ifdef HOLD_ELSEWHERE /* a second file of the same program */
extern unsigned long long hash_state;
#else
unsigned long long hash_state = 1469598103934665603ULL;
#endif
static inline void hash_bytes(const void* data, size_t size) {
    const unsigned char* p = (const unsigned char*)data;
    for (size_t i = 0; i < size; ++i) hash_state = (hash_state ^ p[i]) * 1099511628211ULL;
}

static inline void hold_here(int say) {
    const char* path = getenv("HOLD_FILE");
#ifdef RECORDER_H /* tests/conformance: what is alive here, and used afterwards */
    rec_held();
#endif
    if (!path) return;
    if (say) {
        printf("READY\n");
        fflush(stdout);
    }
    while (access(path, F_OK) != 0) usleep(5000);
}

/* All ranks: READY is said after the slowest arrived. */
static inline void hold(void) {
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Barrier(MPI_COMM_WORLD);
    hold_here(rank == 0);
}

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            int world_rank_;                                                                       \
            MPI_Comm_rank(MPI_COMM_WORLD, &world_rank_);                                           \
            printf("rank %d: %s:%d: not true: %s\n", world_rank_, __FILE__, __LINE__, #condition); \
            fflush(stdout);                                                                        \
            MPI_Abort(MPI_COMM_WORLD, 9);                                                          \
        }                                                                                          \
    } while (0)

static inline void verdict(const char* name) {
    unsigned long long all = 0;
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Reduce(&hash_state, &all, 1, MPI_UNSIGNED_LONG_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) printf("%s: right %016llx\n", name, all);
}
#endif
