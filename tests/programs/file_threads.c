/* Non-blocking collectives of one file, tested by several threads at once (MPI_THREAD_MULTIPLE): held in one
 * order below, while each thread ends its own. On MPICH; Open MPI 4.1.4 does not survive it natively. */
#include <pthread.h>

#include "hold.h"

enum { kRounds = 100, kThreads = 3, kNumbers = 1000 };

static MPI_Request requests[kThreads];
static pthread_barrier_t gate;

static void until_done(MPI_Request* request) {
    for (int done = 0; !done;) MPI_Test(request, &done, MPI_STATUS_IGNORE);
}

static void* rounds(void* which) {
    for (int round = 0; round < kRounds; ++round) {
        pthread_barrier_wait(&gate); /* begun */
        until_done(&requests[(size_t)which]);
        pthread_barrier_wait(&gate); /* ended */
    }
    return NULL;
}

int main(int argc, char** argv) {
    int level, rank, ranks;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    CHECK(level == MPI_THREAD_MULTIPLE);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_File file;
    CHECK(MPI_File_open(MPI_COMM_WORLD, "threads.data", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL,
                        &file) == MPI_SUCCESS);
    static int numbers[kThreads][kNumbers], back[kThreads][kNumbers];
    pthread_barrier_init(&gate, NULL, kThreads + 1);
    pthread_t threads[kThreads];
    for (size_t i = 0; i < kThreads; ++i) pthread_create(&threads[i], NULL, rounds, (void*)i);
    for (int round = 0; round < kRounds; ++round) {
        for (int i = 0; i < kThreads; ++i) {
            for (int k = 0; k < kNumbers; ++k)
                numbers[i][k] = ((round * ranks + rank) * kThreads + i) * kNumbers + k;
            MPI_File_iwrite_at_all(file, (MPI_Offset)sizeof numbers[i] * (rank * kThreads + i), numbers[i],
                                   kNumbers, MPI_INT, &requests[i]);
        }
        pthread_barrier_wait(&gate);
        pthread_barrier_wait(&gate);
    }
    for (int i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL);

    hold();

    /* What the neighbour wrote last. */
    int next = (rank + 1) % ranks;
    for (int i = 0; i < kThreads; ++i)
        MPI_File_iread_at_all(file, (MPI_Offset)sizeof back[i] * (next * kThreads + i), back[i], kNumbers,
                              MPI_INT, &requests[i]);
    MPI_Waitall(kThreads, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < kThreads; ++i)
        for (int k = 0; k < kNumbers; ++k)
            CHECK(back[i][k] == (((kRounds - 1) * ranks + next) * kThreads + i) * kNumbers + k);
    hash_bytes(back, sizeof back);
    MPI_File_close(&file);
    verdict("file_threads");
    MPI_Finalize();
    return 0;
}
