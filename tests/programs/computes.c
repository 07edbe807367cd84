/* Rank 0 computes, far from MPI, until HOLD_FILE is there (for a moment without it); the other ranks wait for
 * it inside of a call, and messages of all kinds are on their way. Each rank says a checksum of what it got.
 *
 *   computes recv|wait|allreduce|bcast|barrier|ssend|probe|gather|dup|brk: that one asks for memory by sbrk
 */
#include "hold.h"

enum { kMany = 200000, kSmall = 16, kMost = 64 };

static int rank, size;
static long sum;
static void add(const int* values, int n, long weight) {
    for (int i = 0; i < n; ++i) sum = (sum * 31 + values[i] * weight + i) % 1000000007;
}
static int value(int from, int i) { return from * 1000 + i % 977; }

/* Under Fermata there is none to be had. */
static void ask_for_memory(void) {
    char* more = sbrk(4096);
    if (more != (void*)-1) *more = 1;
}

static void compute(int asks) {
    const char* hold = getenv("HOLD_FILE");
    volatile double x = 1;
    for (int turn = 0; hold ? access(hold, F_OK) != 0 : turn < 20; ++turn) {
        for (int i = 0; asks && i < 1000; ++i) ask_for_memory();
        for (int i = 0; !asks && i < 200000; ++i) x = x * 1.0000001 + 1e-9;
    }
}

/* What rank 0 does once it has computed, and the others meanwhile. */
static void meet(const char* how) {
    int data[kSmall], got[kSmall * kMost];
    for (int i = 0; i < kSmall; ++i) data[i] = value(rank, i);
    memset(got, 0, sizeof got);
    if (strcmp(how, "recv") == 0 || strcmp(how, "wait") == 0 || strcmp(how, "probe") == 0) {
        if (rank == 0) {
            for (int to = 1; to < size; ++to) MPI_Send(data, kSmall, MPI_INT, to, 5, MPI_COMM_WORLD);
            return;
        }
        MPI_Request request;
        MPI_Status status;
        if (*how == 'p') MPI_Probe(MPI_ANY_SOURCE, 5, MPI_COMM_WORLD, &status);
        if (*how == 'w') {
            MPI_Irecv(got, kSmall, MPI_INT, 0, 5, MPI_COMM_WORLD, &request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(got, kSmall, MPI_INT, *how == 'p' ? MPI_ANY_SOURCE : 0, 5, MPI_COMM_WORLD, &status);
        }
    } else if (strcmp(how, "ssend") == 0) {
        if (rank != 0) MPI_Ssend(data, kSmall, MPI_INT, 0, 5, MPI_COMM_WORLD);
        for (int from = 1; rank == 0 && from < size; ++from)
            MPI_Recv(got + kSmall * from, kSmall, MPI_INT, from, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else if (strcmp(how, "allreduce") == 0) {
        MPI_Allreduce(data, got, kSmall, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    } else if (strcmp(how, "bcast") == 0) {
        memcpy(got, data, sizeof data);
        MPI_Bcast(got, kSmall, MPI_INT, 0, MPI_COMM_WORLD);
    } else if (strcmp(how, "barrier") == 0 || strcmp(how, "brk") == 0) {
        MPI_Barrier(MPI_COMM_WORLD);
    } else if (strcmp(how, "gather") == 0) { /* the others may be through long before */
        MPI_Gather(data, kSmall, MPI_INT, got, kSmall, MPI_INT, 0, MPI_COMM_WORLD);
    } else if (strcmp(how, "dup") == 0) {
        MPI_Comm both;
        MPI_Comm_dup(MPI_COMM_WORLD, &both);
        MPI_Allreduce(data, got, kSmall, MPI_INT, MPI_SUM, both);
        MPI_Comm_free(&both);
    }
    add(got, kSmall * (rank == 0 ? size : 1), 1);
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc < 2 || size > kMost) MPI_Abort(MPI_COMM_WORLD, 2);
    int* large = malloc(kMany * sizeof *large);
    int* here = malloc(kMany * sizeof *here);
    int ready[kSmall];
    MPI_Request requests[2];
    /* To rank 0, which takes them when it has computed: one that is copied and one that is not. */
    if (rank != 0) {
        for (int i = 0; i < kMany; ++i) large[i] = value(rank, i);
        for (int i = 0; i < kSmall; ++i) ready[i] = value(rank, i + 1);
        MPI_Isend(ready, kSmall, MPI_INT, 0, 7, MPI_COMM_WORLD, &requests[0]);
        MPI_Isend(large, kMany, MPI_INT, 0, 8, MPI_COMM_WORLD, &requests[1]);
    }
    int one = rank, all = 0;
    MPI_Allreduce(&one, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    sum = all;
    if (rank == 0) {
        puts("READY"), fflush(stdout);
        compute(strcmp(argv[1], "brk") == 0);
    }
    meet(argv[1]);
    for (int from = 1; rank == 0 && from < size; ++from) {
        MPI_Recv(here, kMany, MPI_INT, from, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        add(here, kMany, 3);
        MPI_Recv(here, kMany, MPI_INT, from, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        add(here, kSmall, 7);
    }
    if (rank != 0) MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    long* sums = malloc((size_t)size * sizeof *sums);
    MPI_Gather(&sum, 1, MPI_LONG, sums, 1, MPI_LONG, 0, MPI_COMM_WORLD);
    for (int i = 0; rank == 0 && i < size; ++i) printf("rank %d: %ld\n", i, sums[i]);
    MPI_Finalize();
    return 0;
}
