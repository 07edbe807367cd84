/* MPI_Cancel of sends and receives over a checkpoint. Whether a send is cancelled is the library's affair
 * (none here does; cancelling.c, preloaded, lets those with PHANTOM be): the program asks, and its receiver
 * takes exactly the others. Synchronous ones of the same channel still end when they are received, not
 * earlier. */
#define HOLD_ELSEWHERE
#include "synchronous.h"

enum { CHANNEL = 3, OLD = 4, EARLY = 5, LATE = 6, TELL = 9, IN = 20, PHANTOM = 1 << 20 };

static int rank, size, right, left;

static int tested(MPI_Request* request, MPI_Status* status) {
    int flag;
    MPI_Test(request, &flag, status);
    return flag;
}
static int was_cancelled(const MPI_Status* status) {
    int flag;
    MPI_Test_cancelled(status, &flag);
    return flag;
}
static int cancel_and_wait(MPI_Request* request) {
    MPI_Status status;
    MPI_Cancel(request);
    MPI_Wait(request, &status);
    return was_cancelled(&status);
}
/* What became of my send, said to its receiver; the answer: what became of my left neighbour's. */
static int told(int mine) {
    int theirs;
    MPI_Sendrecv(&mine, 1, MPI_INT, right, TELL, &theirs, 1, MPI_INT, left, TELL, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    return theirs;
}
static void receive(int tag, int want) {
    int in = -1;
    MPI_Recv(&in, 1, MPI_INT, left, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(in % PHANTOM == want);
    hash_bytes(&want, sizeof want);
}
static void check_open(int n, MPI_Request* requests) {
    for (int i = 0; i < 20; ++i, usleep(500))
        for (int k = 0; k < n; ++k) CHECK(!tested(&requests[k], MPI_STATUS_IGNORE));
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Ends by being cancelled, or when it is received. */
static void check_end(MPI_Request* request, int tag, int value) {
    MPI_Status status;
    int over = 0;
    for (int i = 0; i < 20 && !over; ++i, usleep(500)) over = tested(request, &status);
    if (over) CHECK(was_cancelled(&status));
    if (!told(over)) receive(tag, value);
    if (!over) {
        MPI_Wait(request, &status);
        CHECK(!was_cancelled(&status));
    }
}

static void start(int value, int tag, int synchronous, MPI_Request* request) {
    static int values[16], n;
    values[n] = value;
    (synchronous ? MPI_Issend : MPI_Isend)(&values[n++], 1, MPI_INT, right, tag, MPI_COMM_WORLD, request);
}

void cancelled(void) {
    MPI_Request before, older, kept, first, early, late, phantom, plain, behind[2], in[6];
    MPI_Status status;
    int got[6], gone, gone_left, old_gone, flag, out[4], posted, persistent_gone;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    right = (rank + 1) % size, left = (rank + size - 1) % size;

    /* A channel that is forgotten while a send counted in it is still there, and begun anew. */
    start(1, OLD, 1, &first);
    start(PHANTOM + 2, OLD, 0, &older);
    receive(OLD, 1);
    MPI_Wait(&first, MPI_STATUS_IGNORE);
    start(3, OLD, 1, &kept);
    old_gone = cancel_and_wait(&older);
    old_gone = told(old_gone);

    /* Before, between and after synchronous ones; the third of them is itself given up. */
    start(PHANTOM + 10, CHANNEL, 0, &before);
    start(11, CHANNEL, 1, &first);
    start(PHANTOM + 12, CHANNEL, 0, &phantom);
    start(13, CHANNEL, 1, &behind[0]);
    start(14, CHANNEL, 0, &plain);
    start(15, CHANNEL, 1, &behind[1]);
    gone = cancel_and_wait(&phantom);
    CHECK(cancel_and_wait(&before) == gone);
    gone_left = told(gone);
    CHECK(gone_left == gone); /* one library, one answer */
    start(30, EARLY, 1, &early);
    MPI_Cancel(&early);
    start(31, LATE, 1, &late);

    /* Receives: one of three in a row cancelled and not waited for, a persistent one, a freed one, one to be
     * cancelled afterwards, and one whose message is there. */
    for (int i = 0; i < 6; ++i) got[i] = -1;
    MPI_Irecv(&got[0], 1, MPI_INT, left, IN, MPI_COMM_WORLD, &in[0]);
    MPI_Irecv(&got[1], 1, MPI_INT, MPI_ANY_SOURCE, IN, MPI_COMM_WORLD, &in[1]);
    MPI_Irecv(&got[2], 1, MPI_INT, left, IN, MPI_COMM_WORLD, &in[2]);
    MPI_Recv_init(&got[3], 1, MPI_INT, left, IN + 1, MPI_COMM_WORLD, &in[3]);
    MPI_Irecv(&got[4], 1, MPI_INT, left, IN + 2, MPI_COMM_WORLD, &in[4]);
    MPI_Irecv(&got[5], 1, MPI_INT, left, IN + 3, MPI_COMM_WORLD, &in[5]);
    MPI_Start(&in[3]);
    MPI_Cancel(&in[1]);
    MPI_Cancel(&in[3]);
    posted = rank + 500;
    MPI_Send(&posted, 1, MPI_INT, right, IN + 3, MPI_COMM_WORLD);
    MPI_Irecv(&flag, 1, MPI_INT, left, IN + 4, MPI_COMM_WORLD, &older);
    MPI_Cancel(&older);
    MPI_Request_free(&older);

    hold();

    check_open(1, &kept);
    if (!old_gone) receive(OLD, 2);
    check_open(1, &kept);
    receive(OLD, 3);
    MPI_Wait(&kept, MPI_STATUS_IGNORE);

    check_open(1, &first);
    check_open(2, behind);
    if (!gone) receive(CHANNEL, 10);
    check_open(1, &first);
    receive(CHANNEL, 11);
    MPI_Wait(&first, MPI_STATUS_IGNORE);
    check_open(2, behind);
    if (!gone) receive(CHANNEL, 12);
    check_open(2, behind);
    receive(CHANNEL, 13);
    MPI_Wait(&behind[0], MPI_STATUS_IGNORE);
    check_open(1, &behind[1]);
    if (!told(cancel_and_wait(&plain))) receive(CHANNEL, 14);
    check_open(1, &behind[1]);
    receive(CHANNEL, 15);
    MPI_Wait(&behind[1], MPI_STATUS_IGNORE);
    check_end(&early, EARLY, 30);
    MPI_Cancel(&late);
    check_end(&late, LATE, 31);

    for (int i = 0; i < 4; ++i) out[i] = 10 * rank + i;
    MPI_Send(&out[0], 1, MPI_INT, right, IN, MPI_COMM_WORLD);
    MPI_Send(&out[1], 1, MPI_INT, right, IN, MPI_COMM_WORLD);
    MPI_Waitall(2, (MPI_Request[]){in[0], in[2]}, MPI_STATUSES_IGNORE);
    CHECK(got[0] == 10 * left && got[1] == -1 && got[2] == 10 * left + 1);
    MPI_Wait(&in[1], &status);
    CHECK(was_cancelled(&status));
    MPI_Waitall(1, &in[3], &status);
    persistent_gone = was_cancelled(&status);
    CHECK(persistent_gone);
    MPI_Start(&in[3]);
    MPI_Send(&out[2], 1, MPI_INT, right, IN + 1, MPI_COMM_WORLD);
    MPI_Wait(&in[3], &status);
    CHECK(!was_cancelled(&status) && got[3] == 10 * left + 2);
    MPI_Request_free(&in[3]);
    CHECK(cancel_and_wait(&in[4]));
    if (cancel_and_wait(&in[5]))
        MPI_Recv(&got[5], 1, MPI_INT, left, IN + 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(got[5] == left + 500);
    MPI_Barrier(MPI_COMM_WORLD); /* nothing is left */
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    CHECK(!flag);
}
