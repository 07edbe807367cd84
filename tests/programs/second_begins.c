/* MPI is begun by the second thread; the main one, whose first call comes later, sends and receives all the
 * time that the second one holds (MPI_THREAD_MULTIPLE). Its messages have to come in order. */
#include <pthread.h>

#include "hold.h"

enum { IN_FLIGHT = 6, TAG = 5 };

static MPI_Comm of_main;
static volatile int begun, released;

static void* second(void* unused) {
    int level, rank, size;
    MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &level);
    CHECK(level == MPI_THREAD_MULTIPLE);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_dup(MPI_COMM_WORLD, &of_main);
    __atomic_store_n(&begun, 1, __ATOMIC_RELEASE);
    for (int round = 0; round < 40; ++round) {
        if (round == 20) hold();
        int out = rank * 1000 + round, sum = 0;
        MPI_Allreduce(&out, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        CHECK(sum == size * round + 1000 * size * (size - 1) / 2);
        hash_bytes(&sum, sizeof sum);
    }
    __atomic_store_n(&released, 1, __ATOMIC_RELEASE);
    return unused;
}

static void ring(int number, int left, int right) {
    MPI_Request sends[IN_FLIGHT];
    int out[IN_FLIGHT], in;
    for (int i = 0; i < IN_FLIGHT; ++i) {
        out[i] = number * IN_FLIGHT + i;
        MPI_Isend(&out[i], 1, MPI_INT, right, TAG, of_main, &sends[i]);
    }
    for (int i = 0; i < IN_FLIGHT; ++i) {
        MPI_Recv(&in, 1, MPI_INT, left, TAG, of_main, MPI_STATUS_IGNORE);
        CHECK(in == number * IN_FLIGHT + i);
    }
    MPI_Waitall(IN_FLIGHT, sends, MPI_STATUSES_IGNORE);
}

int main(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, second, NULL);
    while (!__atomic_load_n(&begun, __ATOMIC_ACQUIRE)) usleep(1000);
    int rank, size;
    MPI_Comm_rank(of_main, &rank);
    MPI_Comm_size(of_main, &size);
    for (int number = 0, all = 0; !all; ++number) {
        ring(number, (rank + size - 1) % size, (rank + 1) % size);
        int mine = __atomic_load_n(&released, __ATOMIC_ACQUIRE);
        if (number % 50 == 49) MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, of_main);
    }
    pthread_join(thread, NULL);
    verdict("second_begins");
    MPI_Comm_free(&of_main);
    MPI_Finalize();
    return 0;
}
