/* Four threads per rank call MPI at once (MPI_THREAD_MULTIPLE), each with a communicator and tags of its own.
 * THREADS_ANYWAY: also where MPI_Init_thread provides less. */
#include <pthread.h>

#include "hold.h"

enum { THREADS = 4 };
static int rank, size, steps, rounds;
static MPI_Comm comms[THREADS];
static unsigned long long results[THREADS];

static void* run(void* argument) {
    int t = (int)(long)argument;
    unsigned long long hash = 1469598103934665603ULL + (unsigned)t;
    double value = rank + 0.5 * t;
    for (int step = 0; step < steps; ++step) {
        double in, sum;
        MPI_Request requests[2];
        for (int r = 0; r < rounds; ++r) value = value * 0.9999 + 1e-4 * (r & 15);
        MPI_Irecv(&in, 1, MPI_DOUBLE, (rank + size - 1) % size, t, MPI_COMM_WORLD, &requests[0]);
        MPI_Isend(&value, 1, MPI_DOUBLE, (rank + 1) % size, t, MPI_COMM_WORLD, &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        MPI_Allreduce(&in, &sum, 1, MPI_DOUBLE, MPI_SUM, comms[t]);
        for (size_t i = 0; i < sizeof sum; ++i) hash = (hash ^ ((unsigned char*)&sum)[i]) * 1099511628211ULL;
        value += 1e-3 * in;
    }
    results[t] = hash;
    return NULL;
}

int main(int argc, char** argv) {
    int level, phases = argc > 1 ? atoi(argv[1]) : 10;
    steps = argc > 2 ? atoi(argv[2]) : 20;
    rounds = argc > 3 ? atoi(argv[3]) : 20000;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    CHECK(level == MPI_THREAD_MULTIPLE || getenv("THREADS_ANYWAY") != NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int t = 0; t < THREADS; ++t) MPI_Comm_dup(MPI_COMM_WORLD, &comms[t]);
    for (int phase = 0; phase < phases; ++phase) {
        pthread_t ids[THREADS];
        for (int t = 0; t < THREADS; ++t) CHECK(pthread_create(&ids[t], NULL, run, (void*)(long)t) == 0);
        for (int t = 0; t < THREADS; ++t) CHECK(pthread_join(ids[t], NULL) == 0);
        hash_bytes(results, sizeof results);
        if (rank == 0) {
            printf("step %d %016llx\n", phase, hash_state);
            fflush(stdout);
        }
    }
    verdict("threads");
    MPI_Finalize();
    return 0;
}
