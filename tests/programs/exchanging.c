/* Messages in the ways that have a form of their own (src/front/abi/direct_message.h, short_wait.h), none of
 * them synchronous, which would end those forms. Each round one rank comes late, so that the others wait
 * inside the call when a checkpoint comes: exchanging ROUNDS. The last line is the same whatever happens on
 * the way. */
#include "hold.h"

enum { LARGE = 40000, TAG = 5 };
static int rank, size, right, left;
static double out[LARGE], in[LARGE];

static int value_of(int round, int from) { return 1000 * round + from; }

/* The way of `round` to pass a word on to the right, and to get one from the left. */
static int pass(int round, MPI_Request* lasting) {
    static int word, got;
    MPI_Status status;
    MPI_Request some[4];
    int index, flag = 0, count = 1;
    word = value_of(round, rank);
    got = -1;
    switch (round % 8) {
        case 0:
            MPI_Sendrecv(&word, 1, MPI_INT, right, TAG, &got, 1, MPI_INT, left, TAG, MPI_COMM_WORLD, &status);
            CHECK(status.MPI_SOURCE == left && status.MPI_TAG == TAG);
            break;
        case 1:
            for (int i = 0; i < LARGE; ++i) out[i] = word + i;
            status.MPI_ERROR = MPI_ERR_OTHER; /* nobody's business: MPI-4.0 3.2.5 */
            MPI_Sendrecv(out, LARGE, MPI_DOUBLE, right, TAG, in, LARGE, MPI_DOUBLE, left, TAG, MPI_COMM_WORLD,
                         round % 3 ? &status : MPI_STATUS_IGNORE);
            CHECK(round % 3 == 0 || (status.MPI_SOURCE == left && status.MPI_ERROR == MPI_ERR_OTHER));
            for (int i = 0; i < LARGE; ++i) CHECK(in[i] == value_of(round, left) + i);
            got = (int)in[0];
            break;
        case 2:
            lasting[2] = MPI_REQUEST_NULL;
            MPI_Startall(2, lasting);
            for (int i = 0; i < 2; ++i) {
                MPI_Waitany(3, lasting, &index, round % 3 ? MPI_STATUS_IGNORE : &status);
                CHECK(index == 0 || index == 1);
            }
            MPI_Waitany(3, lasting, &index, &status);
            CHECK(index == MPI_UNDEFINED);
            got = value_of(round, left);
            break;
        case 3:
            MPI_Start(&lasting[0]), MPI_Start(&lasting[1]);
            while (!flag) MPI_Test(&lasting[0], &flag, &status);
            CHECK(status.MPI_SOURCE == left);
            MPI_Wait(&lasting[1], MPI_STATUS_IGNORE);
            got = value_of(round, left);
            break;
        case 4:
            MPI_Irecv(&got, 1, MPI_INT, left, TAG, MPI_COMM_WORLD, &some[0]);
            MPI_Irecv(in, LARGE, MPI_DOUBLE, right, TAG + 1, MPI_COMM_WORLD, &some[1]);
            MPI_Isend(&word, 1, MPI_INT, right, TAG, MPI_COMM_WORLD, &some[2]);
            MPI_Isend(out, LARGE, MPI_DOUBLE, left, TAG + 1, MPI_COMM_WORLD, &some[3]);
            for (int i = 0; i < 4; ++i) {
                MPI_Waitany(4, some, &index, &status);
                CHECK(index >= 0 && index < 4 && some[index] == MPI_REQUEST_NULL);
                if (index == 0) CHECK(status.MPI_SOURCE == left && status.MPI_TAG == TAG);
            }
            for (int i = 0; i < LARGE; ++i) CHECK(in[i] == value_of(round - 3, right) + i); /* case 1's */
            break;
        case 5:
            MPI_Isend(&word, 1, MPI_INT, right, TAG, MPI_COMM_WORLD, &some[0]);
            MPI_Probe(left, TAG, MPI_COMM_WORLD, &status);
            MPI_Get_count(&status, MPI_INT, &count);
            CHECK(count == 1 && status.MPI_SOURCE == left);
            MPI_Recv(&got, 1, MPI_INT, left, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Wait(&some[0], MPI_STATUS_IGNORE);
            break;
        case 6:
            MPI_Isend(&word, 1, MPI_INT, right, TAG, MPI_COMM_WORLD, &some[0]);
            MPI_Recv(&got, 1, MPI_INT, MPI_ANY_SOURCE, TAG, MPI_COMM_WORLD, &status);
            CHECK(status.MPI_SOURCE == left);
            MPI_Wait(&some[0], &status);
            break;
        default:
            MPI_Irecv(&got, 1, MPI_INT, left, MPI_ANY_TAG, MPI_COMM_WORLD, &some[0]);
            MPI_Send(&word, 1, MPI_INT, right, TAG, MPI_COMM_WORLD);
            some[1] = MPI_REQUEST_NULL;
            while (!flag) MPI_Testany(2, some, &index, &flag, &status);
            CHECK(index == 0 && status.MPI_TAG == TAG && some[0] == MPI_REQUEST_NULL);
    }
    return got;
}

int main(int argc, char** argv) {
    const int rounds = argc > 1 ? atoi(argv[1]) : 1000;
    MPI_Request lasting[3];
    static int sent[2], received[2];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    right = (rank + 1) % size, left = (rank + size - 1) % size;
    MPI_Recv_init(received, 2, MPI_INT, left, TAG + 2, MPI_COMM_WORLD, &lasting[0]);
    MPI_Send_init(sent, 2, MPI_INT, right, TAG + 2, MPI_COMM_WORLD, &lasting[1]);
    if (rank == 0) printf("READY\n"), fflush(stdout);
    for (int round = 0; round < rounds; ++round) {
        if ((round / 8 + round) % size == rank) usleep((unsigned)(round * 37 % 2500));
        sent[0] = round, sent[1] = rank;
        const int got = pass(round, lasting);
        CHECK(got == value_of(round, left));
        if (round % 8 == 2 || round % 8 == 3) CHECK(received[0] == round && received[1] == left);
        hash_bytes(&got, sizeof got);
        hash_bytes(received, sizeof received);
    }
    MPI_Request_free(&lasting[0]);
    MPI_Request_free(&lasting[1]);
    verdict("exchanging");
    MPI_Finalize();
    return 0;
}
