/* Holds mutexes that know their owner by its thread id, and takes and gives them back again at every step:
 * only who really owns them can. One of them lies in memory that processes share.
 *
 *   mutex STEPS */
#define _GNU_SOURCE
#include <pthread.h>
#include <sys/mman.h>

#include "hold.h"

int main(int argc, char** argv) {
    int rank, steps = argc > 1 ? atoi(argv[1]) : 100;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    pthread_mutexattr_t kind;
    pthread_mutexattr_init(&kind);
    pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_t* held[2];
    for (int i = 0; i < 2; ++i) {
        held[i] = mmap(0, sizeof *held[i], PROT_READ | PROT_WRITE,
                       MAP_ANONYMOUS | (i ? MAP_SHARED : MAP_PRIVATE), -1, 0);
        pthread_mutex_init(held[i], &kind);
        pthread_mutex_lock(held[i]);
    }
    for (int step = 0; step < steps; ++step) {
        int wrong = 0, all;
        for (int i = 0; i < 2; ++i) {
            int taken = pthread_mutex_trylock(held[i]);
            wrong |= taken ? taken : pthread_mutex_unlock(held[i]);
        }
        MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
        if (rank == 0) printf("step %d%s\n", step, all ? " wrong: not its owner" : ""), fflush(stdout);
        usleep(5000);
    }
    MPI_Finalize();
    return 0;
}
