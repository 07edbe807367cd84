/* Synchronous sends over a checkpoint: they end when their receiver has received, not when the checkpoint
 * has. */
#define HOLD_ELSEWHERE
#include "synchronous.h"

enum { TAG = 3, MIXED = 4, SELF = 5, LARGE = 6, TOLD = 9, COUNT = 1 << 17, N = 9 };

static int rank, size, right, left;

static void know_the_world(void) {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    right = (rank + 1) % size, left = (rank + size - 1) % size;
}

static int tested(MPI_Request* request) {
    int flag;
    MPI_Test(request, &flag, MPI_STATUS_IGNORE);
    return flag;
}

/* Nothing of it ends for a while, though all of the job is inside MPI. */
static void check_open(int n, MPI_Request* requests) {
    for (int i = 0; i < 40; ++i) {
        for (int k = 0; k < n; ++k)
            if (requests[k] != MPI_REQUEST_NULL) CHECK(!tested(&requests[k]));
        usleep(500);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    for (int k = 0; k < n; ++k)
        if (requests[k] != MPI_REQUEST_NULL) CHECK(!tested(&requests[k]));
    MPI_Barrier(MPI_COMM_WORLD);
}

static int receive(int source, int tag, MPI_Comm comm) {
    int in = -1;
    MPI_Recv(&in, 1, MPI_INT, source, tag, comm, MPI_STATUS_IGNORE);
    hash_bytes(&in, sizeof in);
    return in;
}

/* Every way to send, every way to receive; others in the same channel before and after.
 * Nothing ends early, all ends as soon as it natively would. */
void synchronous(void) {
    MPI_Comm dup;
    MPI_Request r[N], plain[2];
    MPI_Message message;
    MPI_Status status;
    int value[12], in, flag = 0;
    static double out[COUNT], got[COUNT];
    know_the_world();
    MPI_Comm_dup(MPI_COMM_WORLD, &dup);
    for (int i = 0; i < 12; ++i) value[i] = 100 * rank + i;
    for (int i = 0; i < COUNT; ++i) out[i] = rank + i * 0.25;
    enum { FIRST, MATCHED, SECOND, LAST, PROBED, OWN, DUP, PERSISTENT, BIG };
    MPI_Issend(&value[0], 1, MPI_INT, right, MIXED, MPI_COMM_WORLD, &r[FIRST]);
    MPI_Isend(&value[1], 1, MPI_INT, right, MIXED, MPI_COMM_WORLD, &plain[0]);
    MPI_Issend(&value[2], 1, MPI_INT, right, MIXED, MPI_COMM_WORLD, &r[SECOND]);
    MPI_Isend(&value[3], 1, MPI_INT, right, MIXED, MPI_COMM_WORLD, &plain[1]);
    MPI_Issend(&value[4], 1, MPI_INT, right, MIXED, MPI_COMM_WORLD, &r[LAST]);
    MPI_Issend(&value[5], 1, MPI_INT, right, TAG, MPI_COMM_WORLD, &r[MATCHED]);
    MPI_Issend(&value[6], 1, MPI_INT, right, TAG, MPI_COMM_WORLD, &r[PROBED]);
    MPI_Issend(&value[7], 1, MPI_INT, rank, SELF, MPI_COMM_WORLD, &r[OWN]);
    MPI_Issend(&value[8], 1, MPI_INT, right, MIXED, dup, &r[DUP]);
    MPI_Ssend_init(&value[9], 1, MPI_INT, right, TAG, dup, &r[PERSISTENT]);
    MPI_Start(&r[PERSISTENT]);
    MPI_Issend(out, COUNT, MPI_DOUBLE, right, LARGE, MPI_COMM_WORLD, &r[BIG]);
    /* The heads of two channels are received before: their senders hear of it afterwards only. */
    CHECK(receive(left, MIXED, MPI_COMM_WORLD) == 100 * left);
    CHECK(receive(left, TAG, MPI_COMM_WORLD) == 100 * left + 5);
    hold();
    MPI_Wait(&r[FIRST], MPI_STATUS_IGNORE);
    MPI_Wait(&r[MATCHED], MPI_STATUS_IGNORE);
    MPI_Probe(left, MIXED, MPI_COMM_WORLD, &status);
    check_open(N, r);
    CHECK(receive(left, MIXED, MPI_COMM_WORLD) == 100 * left + 1); /* a plain one */
    check_open(N, r);
    CHECK(receive(MPI_ANY_SOURCE, MIXED, MPI_COMM_WORLD) == 100 * left + 2);
    MPI_Wait(&r[SECOND], MPI_STATUS_IGNORE);
    check_open(N, r);
    MPI_Mprobe(left, TAG, MPI_COMM_WORLD, &message, &status);
    MPI_Imrecv(&in, 1, MPI_INT, &message, &plain[0]);
    MPI_Wait(&plain[0], MPI_STATUS_IGNORE);
    CHECK(in == 100 * left + 6);
    MPI_Wait(&r[PROBED], MPI_STATUS_IGNORE);
    check_open(N, r);
    CHECK(receive(rank, SELF, MPI_COMM_WORLD) == 100 * rank + 7);
    MPI_Waitall(1, &r[OWN], MPI_STATUSES_IGNORE);
    check_open(N, r);
    MPI_Irecv(&in, 1, MPI_INT, left, MIXED, dup, &plain[0]);
    while (!flag) MPI_Testall(1, &r[DUP], &flag, MPI_STATUSES_IGNORE);
    MPI_Wait(&plain[0], MPI_STATUS_IGNORE);
    CHECK(in == 100 * left + 8);
    CHECK(receive(left, TAG, dup) == 100 * left + 9);
    MPI_Wait(&r[PERSISTENT], MPI_STATUS_IGNORE);
    MPI_Start(&r[PERSISTENT]);
    check_open(N, r);
    CHECK(receive(left, TAG, dup) == 100 * left + 9);
    MPI_Recv(got, COUNT, MPI_DOUBLE, left, LARGE, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < COUNT; ++i) CHECK(got[i] == left + i * 0.25);
    CHECK(receive(left, MIXED, MPI_COMM_WORLD) == 100 * left + 3);
    CHECK(receive(left, MIXED, MPI_COMM_WORLD) == 100 * left + 4);
    MPI_Waitall(N, r, MPI_STATUSES_IGNORE);
    MPI_Wait(&plain[1], MPI_STATUS_IGNORE);
    MPI_Request_free(&r[PERSISTENT]);
    MPI_Comm_free(&dup);
}

/* The sparse exchange with its end waited for: who has entered the barrier knows that its messages were
 * received. Rank 0 has looked for none, so the barrier cannot be over, nor can word come from the others. */
void sparse_wait(void) {
    MPI_Request sends[3], barrier;
    int value[3], n = 0, over = 1, flag, sum = 0;
    know_the_world();
    if (rank != 0)
        for (; n < 3; ++n) {
            value[n] = rank * 10 + n;
            MPI_Issend(&value[n], 1, MPI_INT, 0, TAG, MPI_COMM_WORLD, &sends[n]);
        }
    hold();
    if (rank != 0) MPI_Waitall(n, sends, MPI_STATUSES_IGNORE);
    MPI_Ibarrier(MPI_COMM_WORLD, &barrier);
    if (rank == 0) {
        for (int i = 0; i < 100; ++i) {
            CHECK(!tested(&barrier));
            MPI_Iprobe(MPI_ANY_SOURCE, TOLD, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
            CHECK(!flag);
            usleep(1000);
        }
        for (int i = 1; i < size; ++i)
            for (int k = 0; k < 3; ++k) {
                int in;
                MPI_Recv(&in, 1, MPI_INT, MPI_ANY_SOURCE, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                sum += in;
            }
    }
    MPI_Wait(&barrier, MPI_STATUS_IGNORE);
    if (rank != 0) {
        MPI_Send(&over, 1, MPI_INT, 0, TOLD, MPI_COMM_WORLD);
    } else {
        for (int i = 1; i < size; ++i) over = receive(MPI_ANY_SOURCE, TOLD, MPI_COMM_WORLD);
        MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
        CHECK(!flag);
    }
    hash_bytes(&sum, sizeof sum);
}

/* Even ranks are inside MPI_Ssend, small and large ones, when the checkpoint comes; the others outside MPI.
 */
void blocked_ssend(void) {
    const char* path = getenv("HOLD_FILE_LATE");
    static double data[COUNT];
    int count = 1, flag, word = 1;
    know_the_world();
    if (rank >= 2) count = COUNT;
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank % 2 == 0 && rank + 1 < size) {
        for (int i = 0; i < count; ++i) data[i] = rank + i;
        if (rank == 0) {
            printf("READY\n");
            fflush(stdout);
        }
        MPI_Ssend(data, count, MPI_DOUBLE, rank + 1, TAG, MPI_COMM_WORLD);
        MPI_Send(&word, 1, MPI_INT, rank + 1, TOLD, MPI_COMM_WORLD);
    } else if (rank % 2) {
        while (path && access(path, F_OK) != 0) usleep(5000);
        for (int i = 0; i < 100; ++i) {
            MPI_Iprobe(rank - 1, TOLD, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
            CHECK(!flag);
            usleep(1000);
        }
        MPI_Recv(data, COUNT, MPI_DOUBLE, rank - 1, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int i = 0; i < (rank < 2 ? 1 : COUNT); ++i) CHECK(data[i] == rank - 1 + i);
        CHECK(receive(rank - 1, TOLD, MPI_COMM_WORLD) == 1);
    }
}

/* Synchronous sends to open receives of a rank that is inside of a collective call already, in which it waits
 * for the sender. */
void taken_beside(void) {
    MPI_Request r[3];
    int in[3], word = 0;
    know_the_world();
    for (int turn = 0; turn < 4; ++turn) {
        const int from = turn % 2, to = 1 - from;
        if (rank == to) {
            for (int i = 0; i < 3; ++i)
                MPI_Irecv(&in[i], 1, MPI_INT, from, i == 2 ? MIXED : TAG, MPI_COMM_WORLD, &r[i]);
        } else if (rank == from) {
            usleep(50000); /* the other one is inside */
            for (int i = 0; i < 3; ++i) {
                const int value = 10 * turn + i;
                MPI_Ssend(&value, 1, MPI_INT, to, i == 1 ? MIXED : TAG, MPI_COMM_WORLD);
            }
            word = turn;
        }
        if (turn < 2)
            MPI_Barrier(MPI_COMM_WORLD);
        else
            MPI_Bcast(&word, 1, MPI_INT, from, MPI_COMM_WORLD);
        if (rank != to) continue;
        MPI_Waitall(3, r, MPI_STATUSES_IGNORE);
        CHECK(in[0] == 10 * turn && in[1] == 10 * turn + 2 && in[2] == 10 * turn + 1);
    }
    hash_bytes(&word, sizeof word);
}

/* The job's first synchronous send comes while a checkpoint converges: rank 3 is inside a barrier that rank 1
 * has yet to enter. Before that rank 1 waits for its message to be received by rank 2, which nobody needs and
 * which stands before a broadcast beyond the cut. */
void first_ssend(void) {
    enum { OTHER = 2 };
    MPI_Request request;
    MPI_Comm all, others, pair;
    int word = 7;
    know_the_world();
    MPI_Comm_split(MPI_COMM_WORLD, rank < 4 ? 0 : MPI_UNDEFINED, rank, &all);
    CHECK(size >= 4);
    if (rank >= 4) return;
    MPI_Comm_split(all, rank != OTHER, rank, &others);
    MPI_Comm_split(all, rank != OTHER && rank != 0, -rank, &pair); /* its rank 0 is OTHER */
    MPI_Barrier(all);
    if (rank == 0) {
        printf("READY\n");
        fflush(stdout);
        MPI_Barrier(others);
        MPI_Bcast(&word, 1, MPI_INT, 0, pair);
    } else if (rank == 1) {
        usleep(700000);
        MPI_Issend(&rank, 1, MPI_INT, OTHER, TAG, all, &request);
        MPI_Ssend(&rank, 1, MPI_INT, OTHER, MIXED, all);
        MPI_Barrier(others);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else if (rank == OTHER) {
        usleep(400000);
        word = 8;
        MPI_Bcast(&word, 1, MPI_INT, 0, pair);
        CHECK(receive(1, MIXED, all) == 1);
        CHECK(receive(1, TAG, all) == 1);
    } else {
        MPI_Barrier(others);
    }
    usleep(1000000); /* the second attempt may come after all that */
    hash_bytes(&word, sizeof word);
    MPI_Comm_free(&pair);
    MPI_Comm_free(&others);
    MPI_Comm_free(&all);
}
