/* Partitioned messages of several threads (MPI_THREAD_MULTIPLE): each makes its own partitions ready and asks
 * for its own ones of the one request, while the main thread waits for the send. At the hold half of a
 * message is ready. On MPICH; Open MPI 4.1.4 has none. */
#include <pthread.h>

#include "hold.h"

enum { THREADS = 4, EACH = 2, PARTS = THREADS * EACH, NUMBERS = 50, ROUNDS = 60 };

static MPI_Request sends, receives;
static int out[PARTS][NUMBERS], in[PARTS][NUMBERS], rank, size, left, round_now, wrong[THREADS];
static pthread_barrier_t gate;

static int number(int from, int round, int part, int i) {
    return ((round * size + from) * PARTS + part) * NUMBERS + i;
}

static void make_ready(int part) {
    for (int i = 0; i < NUMBERS; ++i) out[part][i] = number(rank, round_now, part, i);
    MPI_Pready(part, sends);
}

static void take(int thread, int part) {
    for (int here = 0; !here;) MPI_Parrived(receives, part, &here);
    for (int i = 0; i < NUMBERS; ++i) wrong[thread] += in[part][i] != number(left, round_now, part, i);
}

static void* rounds(void* which) {
    const int thread = (int)(size_t)which;
    for (int round = 0; round < ROUNDS; ++round) {
        pthread_barrier_wait(&gate); /* started */
        for (int i = 0; i < EACH; ++i) make_ready(thread * EACH + i);
        for (int i = 0; i < EACH; ++i) take(thread, thread * EACH + i);
        pthread_barrier_wait(&gate); /* taken */
    }
    return NULL;
}

int main(int argc, char** argv) {
    int level;
    pthread_t threads[THREADS];
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    CHECK(level == MPI_THREAD_MULTIPLE);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    left = (rank + size - 1) % size;
    MPI_Psend_init(out, PARTS, NUMBERS, MPI_INT, (rank + 1) % size, 3, MPI_COMM_WORLD, MPI_INFO_NULL, &sends);
    MPI_Precv_init(in, PARTS, NUMBERS, MPI_INT, left, 3, MPI_COMM_WORLD, MPI_INFO_NULL, &receives);
    pthread_barrier_init(&gate, NULL, THREADS + 1);
    for (size_t i = 0; i < THREADS; ++i) pthread_create(&threads[i], NULL, rounds, (void*)i);
    for (round_now = 0; round_now < ROUNDS;) {
        MPI_Start(&sends), MPI_Start(&receives);
        pthread_barrier_wait(&gate);
        MPI_Wait(&sends, MPI_STATUS_IGNORE);
        pthread_barrier_wait(&gate);
        MPI_Wait(&receives, MPI_STATUS_IGNORE);
        ++round_now;
    }
    for (int i = 0; i < THREADS; ++i) pthread_join(threads[i], NULL);
    MPI_Start(&sends), MPI_Start(&receives);
    for (int part = 0; part < PARTS / 2; ++part) make_ready(part);
    hold();
    for (int part = PARTS / 2; part < PARTS; ++part) make_ready(part);
    MPI_Wait(&sends, MPI_STATUS_IGNORE);
    for (int part = 0; part < PARTS; ++part) take(0, part);
    MPI_Wait(&receives, MPI_STATUS_IGNORE);
    for (int i = 0; i < THREADS; ++i) CHECK(wrong[i] == 0);
    MPI_Request_free(&sends), MPI_Request_free(&receives);
    hash_bytes(in, sizeof in);
    verdict("parted_threads");
    MPI_Finalize();
    return 0;
}
