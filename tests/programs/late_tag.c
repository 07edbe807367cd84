/* Rank 0 sends much that rank 1 takes only after a late message of another tag: small messages, buffered
 * ones, broadcasts. Before the late one rank 0 waits for HOLD_FILE (a moment without it). Rank 1 says
 * checksums.
 *
 *   late_tag [MESSAGES [TURNS]]
 */
#include "hold.h"

enum { kSmall = 500, kLarge = 600000, kLargeOnes = 3, kBroadcasts = 40 };

static int rank;
static unsigned long sum;
static void fill(int* values, int n, unsigned seed) {
    for (int i = 0; i < n; ++i) values[i] = (int)((seed = seed * 1664525u + 1013904223u) >> 3);
}
static void add(const int* values, int n) {
    for (int i = 0; i < n; ++i) sum = (sum * 31 + (unsigned)values[i]) % 1000000007;
}

static void wait_for(int turn) {
    const char* file = getenv("HOLD_FILE");
    printf("READY\n");
    fflush(stdout);
    if (!file) return;
    char name[4096];
    snprintf(name, sizeof name, "%s%d", file, turn);
    while (access(name, F_OK) != 0) usleep(2000);
}

static void give(int messages, int turn, int* large) {
    static int small[64][kSmall];
    MPI_Request requests[64];
    for (int begin = 0; begin < messages; begin += 64) {
        int n = messages - begin < 64 ? messages - begin : 64;
        for (int i = 0; i < n; ++i) {
            fill(small[i], kSmall, (unsigned)(begin + i + 7777 * turn));
            MPI_Isend(small[i], kSmall, MPI_INT, 1, 1 + (begin + i) % 3, MPI_COMM_WORLD, &requests[i]);
        }
        MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
    }
    for (int i = 0; i < kLargeOnes; ++i) {
        fill(large, kLarge, (unsigned)(i + 99 * turn));
        MPI_Bsend(large, kLarge, MPI_INT, 1, 50, MPI_COMM_WORLD);
    }
    for (int i = 0; i < kBroadcasts; ++i) {
        fill(small[0], kSmall, (unsigned)(i + 555 * turn));
        MPI_Bcast(small[0], kSmall, MPI_INT, 0, MPI_COMM_WORLD);
    }
    wait_for(turn);
    MPI_Send(&turn, 1, MPI_INT, 1, 99, MPI_COMM_WORLD);
}

static void take(int messages, int* large) {
    int small[kSmall], late;
    MPI_Recv(&late, 1, MPI_INT, 0, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int tag = 3; tag >= 1; --tag)
        for (int i = tag - 1; i < messages; i += 3) {
            MPI_Recv(small, kSmall, MPI_INT, 0, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            add(small, kSmall);
        }
    for (int i = 0; i < kLargeOnes; ++i) {
        MPI_Recv(large, kLarge, MPI_INT, 0, 50, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        add(large, kLarge);
    }
    for (int i = 0; i < kBroadcasts; ++i) {
        MPI_Bcast(small, kSmall, MPI_INT, 0, MPI_COMM_WORLD);
        add(small, kSmall);
    }
    printf("turn %d: %lu\n", late, sum);
    fflush(stdout);
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int messages = argc > 1 ? atoi(argv[1]) : 2000, turns = argc > 2 ? atoi(argv[2]) : 1, rest;
    int* large = malloc(kLarge * sizeof *large);
    const int room = kLargeOnes * (kLarge * (int)sizeof *large + MPI_BSEND_OVERHEAD);
    char* buffer = malloc((size_t)room);
    MPI_Buffer_attach(buffer, room);
    for (int turn = 0; turn < turns; ++turn) {
        if (rank == 0) give(messages, turn, large);
        if (rank == 1) take(messages, large);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Buffer_detach(&buffer, &rest);
    MPI_Finalize();
    return 0;
}
