#include "cases.h"

enum { N = 5, TAG = 9 };

static void fill(int* data, int n, int base) {
    for (int i = 0; i < n; ++i) data[i] = base + 10 * rank + i;
}

void case_sends(void) {
    int out[N], in[N] = {0}, both[N];
    MPI_Status status;
    MPI_Request request;
    fill(out, N, 100);
    if (rank % 2 == 0) {
        MPI_Send(out, N, MPI_INT, peer, TAG, WORLD);
        MPI_Ssend(out, N - 1, MPI_INT, peer, TAG, WORLD);
        MPI_Recv(in, N, MPI_INT, peer, TAG, WORLD, &status); /* the receive below is posted now */
        MPI_Rsend(out, N - 2, MPI_INT, peer, TAG + 1, WORLD);
        MPI_Send(out, N, MPI_INT, MPI_PROC_NULL, TAG, WORLD);
    } else {
        MPI_Recv(in, N, MPI_INT, peer, TAG, WORLD, &status);
        SHOW(in);
        MPI_Recv(in, N, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, WORLD, &status);
        int early[N] = {0};
        PMPI_Irecv(early, N, MPI_INT, peer, TAG + 1, WORLD, &request);
        MPI_Send(out, 1, MPI_INT, peer, TAG, WORLD);
        PMPI_Wait(&request, &status);
        SHOW(early);
        MPI_Recv(in, N, MPI_INT, MPI_PROC_NULL, TAG, WORLD, &status);
    }
    SHOW(in);
    fill(out, N, 200);
    MPI_Sendrecv(out, N, MPI_INT, right, TAG, in, N, MPI_INT, left, TAG, WORLD, &status);
    SHOW(in);
    fill(both, N, 300);
    MPI_Sendrecv_replace(both, N, MPI_INT, right, TAG, left, TAG, WORLD, &status);
    SHOW(both);
    /* what is wrong */
    MPI_Send(out, -1, MPI_INT, peer, TAG, WORLD);
    MPI_Send(out, 1, MPI_INT, size, TAG, WORLD);
    MPI_Send(out, 1, MPI_INT, peer, -5, WORLD);
    MPI_Send(out, 1, MPI_DATATYPE_NULL, peer, TAG, WORLD);
    MPI_Send(out, 1, MPI_INT, peer, TAG, MPI_COMM_NULL);
    MPI_Recv(in, 1, MPI_INT, -7, TAG, WORLD, &status);
    /* truncated */
    MPI_Sendrecv(out, N, MPI_INT, rank, TAG, in, 1, MPI_INT, rank, TAG, MPI_COMM_SELF, &status);
    if (rank == 0) {
        PMPI_Isend(out, N, MPI_INT, 0, TAG, MPI_COMM_SELF, &request);
        MPI_Recv(in, 1, MPI_INT, 0, TAG, MPI_COMM_SELF, &status);
        PMPI_Wait(&request, MPI_STATUS_IGNORE);
    }
}

void case_probes(void) {
    int out[N], in[N] = {0}, flag = 0;
    MPI_Status status;
    MPI_Message message;
    MPI_Request request;
    fill(out, N, 400);
    PMPI_Isend(out, N, MPI_INT, right, TAG, WORLD, &request);
    MPI_Probe(left, TAG, WORLD, &status);
    UNTIL(flag, MPI_Iprobe(MPI_ANY_SOURCE, TAG, WORLD, &flag, &status));
    MPI_Mprobe(left, MPI_ANY_TAG, WORLD, &message, &status);
    MPI_Mrecv(in, N, MPI_INT, &message, &status);
    SHOW(in);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Isend(out, N - 3, MPI_INT, right, TAG, WORLD, &request);
    UNTIL(flag, MPI_Improbe(left, TAG, WORLD, &flag, &message, &status));
    MPI_Request receive;
    MPI_Imrecv(in, N, MPI_INT, &message, &receive);
    MPI_Wait(&receive, &status);
    SHOW(in);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Iprobe(left, TAG + 7, WORLD, &flag, &status);
    MPI_Probe(MPI_PROC_NULL, TAG, WORLD, &status);
    MPI_Mprobe(MPI_PROC_NULL, TAG, WORLD, &message, &status);
    MPI_Mrecv(in, N, MPI_INT, &message, &status);
    MPI_Improbe(MPI_PROC_NULL, TAG, WORLD, &flag, &message, &status);
    MPI_Imrecv(in, N, MPI_INT, &message, &receive);
    MPI_Wait(&receive, &status);
}

void case_requests(void) {
    int out[N], in[4][N] = {{0}}, flag = 0;
    MPI_Status status;
    MPI_Request receive, send;
    fill(out, N, 500);
    MPI_Irecv(in[0], N, MPI_INT, left, TAG, WORLD, &receive);
    MPI_Request_get_status(receive, &flag, &status);
    PMPI_Barrier(WORLD); /* nobody's message was there before */
    MPI_Isend(out, N, MPI_INT, right, TAG, WORLD, &send);
    UNTIL(flag, MPI_Request_get_status(receive, &flag, &status));
    UNTIL(flag, MPI_Test(&receive, &flag, &status));
    UNTIL(flag, MPI_Test(&send, &flag, MPI_STATUS_IGNORE));
    MPI_Test(&send, &flag, &status); /* null by now */
    MPI_Irecv(in[1], N, MPI_INT, left, TAG, WORLD, &receive);
    MPI_Issend(out, N, MPI_INT, right, TAG, WORLD, &send);
    MPI_Wait(&receive, &status);
    MPI_Wait(&send, MPI_STATUS_IGNORE);
    MPI_Irecv(in[2], N, MPI_INT, left, TAG, WORLD, &receive);
    PMPI_Barrier(WORLD);
    MPI_Irsend(out, N, MPI_INT, right, TAG, WORLD, &send);
    MPI_Wait(&send, MPI_STATUS_IGNORE);
    MPI_Wait(&receive, &status);
    MPI_Isendrecv(out, N, MPI_INT, right, TAG, in[3], N, MPI_INT, left, TAG, WORLD, &receive);
    MPI_Wait(&receive, &status);
    MPI_Isendrecv_replace(out, N, MPI_INT, right, TAG, left, TAG, WORLD, &receive);
    MPI_Wait(&receive, &status);
    SHOW(out);
    SHOW(in[0]);
    SHOW(in[3]);
    MPI_Irecv(in[0], N, MPI_INT, left, TAG + 3, WORLD, &receive);
    MPI_Cancel(&receive);
    MPI_Wait(&receive, &status);
    MPI_Test_cancelled(&status, &flag);
    MPI_Isend(out, 1, MPI_INT, right, TAG + 4, WORLD, &send);
    MPI_Request_free(&send);
    MPI_Recv(in[0], 1, MPI_INT, left, TAG + 4, WORLD, &status);
    MPI_Irecv(in[0], 1, MPI_INT, MPI_PROC_NULL, TAG, WORLD, &receive);
    MPI_Wait(&receive, &status);
    receive = MPI_REQUEST_NULL;
    MPI_Wait(&receive, &status);
    MPI_Request_free(&receive);
    MPI_Cancel(&receive);
    MPI_Irecv(in[0], 1, MPI_INT, size + 3, TAG, WORLD, &receive);
}

/* Messages to oneself, one of them longer than what receives it. */
static void begin_three(int in[3][N], const int* out, MPI_Request* all, MPI_Comm comm) {
    for (int i = 0; i < 3; ++i) PMPI_Irecv(in[i], i == 1 ? 1 : N, MPI_INT, 0, TAG + i, comm, &all[i]);
    for (int i = 0; i < 3; ++i) PMPI_Isend(out, N, MPI_INT, 0, TAG + i, comm, &all[3 + i]);
}
void case_bad_ends(void) {
    int out[N], in[3][N] = {{0}}, flag = 0;
    MPI_Status statuses[6], status;
    MPI_Request all[6], one;
    fill(out, N, 600);
    memset(statuses, 0, sizeof statuses);
    begin_three(in, out, all, MPI_COMM_SELF), MPI_Waitall(6, all, statuses);
    PMPI_Waitall(6, all, MPI_STATUSES_IGNORE); /* a library may have left some */
    SHOW(in[2]);
    begin_three(in, out, all, MPI_COMM_SELF), MPI_Waitall(6, all, MPI_STATUSES_IGNORE);
    PMPI_Waitall(6, all, MPI_STATUSES_IGNORE);
    SHOW(in[2]);
    begin_three(in, out, all, MPI_COMM_SELF);
    MPI_Wait(&all[1], &status), MPI_Wait(&all[0], &status);
    all[1] = all[0] = MPI_REQUEST_NULL; /* among others */
    MPI_Waitall(6, all, MPI_STATUSES_IGNORE);
    begin_three(in, out, all, MPI_COMM_SELF);
    UNTIL(flag, MPI_Test(&all[0], &flag, &status));
    MPI_Test(&all[1], &flag, &status); /* it came before that one */
    all[1] = MPI_REQUEST_NULL;
    PMPI_Waitall(6, all, MPI_STATUSES_IGNORE);
    PMPI_Isend(out, N, MPI_INT, 0, TAG, MPI_COMM_SELF, &one);
    MPI_Recv(in[0], 1, MPI_INT, 0, TAG, MPI_COMM_SELF, MPI_STATUS_IGNORE);
    PMPI_Wait(&one, MPI_STATUS_IGNORE);
    /* Nothing began. */
    one = MPI_REQUEST_NULL;
    MPI_Isend(out, N, MPI_INT, 1, TAG, MPI_COMM_SELF, &one);
    MPI_Wait(&one, &status);
    MPI_Irecv(out, N, MPI_INT, 1, TAG, MPI_COMM_SELF, &one);
    MPI_Wait(&one, &status);
}

/* Messages that come while they are waited for, every second one longer than what receives it. */
void case_too_long(void) {
    int out[N], in[N] = {0};
    MPI_Status status;
    fill(out, N, 800);
    for (int turn = 0; rank < 2 && turn < 40; ++turn) {
        const int room = turn % 2 == 0 ? 1 : N, other = 1 - rank;
        if (rank == 0) PMPI_Send(out, N, MPI_INT, other, TAG, WORLD);
        if (turn % 4 < 2)
            MPI_Recv(in, room, MPI_INT, other, TAG, WORLD, MPI_STATUS_IGNORE);
        else
            MPI_Recv(in, room, MPI_INT, turn % 8 < 4 ? other : MPI_ANY_SOURCE, TAG, WORLD, &status);
        if (rank == 1) PMPI_Send(out, N, MPI_INT, other, TAG, WORLD);
    }
    SHOW(in);
}

/* Type and communicator live as long as messages need them. */
void case_held_objects(void) {
    int out[2 * N], in[3][2 * N] = {{0}}, flag = 0;
    MPI_Status statuses[4];
    MPI_Request all[4];
    MPI_Comm comm;
    MPI_Datatype pairs;
    fill(out, 2 * N, 700);
    for (int turn = 0; turn < 2; ++turn) {
        MPI_Comm_dup(MPI_COMM_SELF, &comm);
        MPI_Type_vector(N, 1, 2, MPI_INT, &pairs);
        MPI_Type_commit(&pairs);
        MPI_Irecv(in[0], 1, pairs, 0, TAG, comm, &all[0]);
        MPI_Irecv(in[1], N, MPI_INT, MPI_ANY_SOURCE, TAG + 1, comm, &all[1]);
        MPI_Isend(out, 1, pairs, 0, TAG, comm, &all[2]);
        MPI_Isend(out, N, MPI_INT, 0, TAG + 1, comm, &all[3]);
        MPI_Type_free(&pairs);
        MPI_Comm_free(&comm);
        if (turn == 0) {
            MPI_Waitall(4, all, statuses);
        } else {
            MPI_Wait(&all[0], &statuses[0]);
            UNTIL(flag, MPI_Test(&all[1], &flag, &statuses[1]));
            MPI_Waitall(2, all + 2, MPI_STATUSES_IGNORE);
        }
        SHOW(in[0]);
        SHOW(in[1]);
    }
    MPI_Comm_dup(MPI_COMM_SELF, &comm);
    MPI_Type_contiguous(N, MPI_INT, &pairs);
    MPI_Type_commit(&pairs);
    MPI_Irecv(in[2], 1, pairs, 0, TAG, comm, &all[0]);
    MPI_Send(out, 1, pairs, 0, TAG, comm);
    MPI_Wait(&all[0], statuses);
    PMPI_Isend(out, 1, pairs, 0, TAG, comm, &all[0]);
    MPI_Recv(in[2], 1, pairs, 0, TAG, comm, statuses);
    PMPI_Wait(&all[0], MPI_STATUS_IGNORE);
    SHOW(in[2]);
    MPI_Type_free(&pairs);
    MPI_Comm_free(&comm);
}

/* Before anybody sends synchronously: with short forms (src/front/abi/direct_message.h). Once: MPICH 4.0.2's
 * MPI_Isendrecv, in some of the styles, gives wrong statuses and does not bear MPI_PROC_NULL. */
void case_exchanges(void) {
    int out[N], in[N] = {0}, flag = 0;
    MPI_Status status;
    MPI_Request request;
    fill(out, N, 800);
    for (int turn = 0; turn < 3; ++turn) {
        MPI_Sendrecv(out, N - turn, MPI_INT, right, TAG + turn, in, N, MPI_INT, left, TAG + turn, WORLD,
                     &status);
        SHOW(in);
    }
    MPI_Sendrecv(out, 2, MPI_INT, right, TAG, in, 8, MPI_BYTE, left, TAG, WORLD, MPI_STATUS_IGNORE);
    MPI_Sendrecv(out, 0, MPI_INT, right, TAG, in, 0, MPI_INT, left, MPI_ANY_TAG, WORLD, &status);
    MPI_Sendrecv(out, 1, MPI_INT, MPI_PROC_NULL, TAG, in, 1, MPI_INT, MPI_PROC_NULL, TAG, WORLD, &status);
    MPI_Sendrecv(out, 1, MPI_INT, 0, TAG, in, N, MPI_INT, MPI_ANY_SOURCE, TAG, MPI_COMM_SELF, &status);
    /* more than the libraries send at once, in both directions */
    enum { LARGE = 50000 };
    static int large[2][LARGE];
    for (int i = 0; i < LARGE; ++i) large[0][i] = rank + i;
    MPI_Sendrecv(large[0], LARGE, MPI_INT, right, TAG, large[1], LARGE, MPI_INT, left, TAG, WORLD, &status);
    int wrong = 0;
    for (int i = 0; i < LARGE; ++i) wrong += large[1][i] != left + i;
    SHOW1(wrong);
    /* truncated, and what comes after it */
    MPI_Sendrecv(out, N, MPI_INT, 0, TAG, in, 1, MPI_INT, 0, TAG, MPI_COMM_SELF, &status);
    MPI_Sendrecv(out, N, MPI_INT, 0, TAG, in, 1, MPI_INT, 0, TAG, MPI_COMM_SELF, MPI_STATUS_IGNORE);
    MPI_Sendrecv(out + 1, 2, MPI_INT, 0, TAG, in, N, MPI_INT, 0, TAG, MPI_COMM_SELF, &status);
    SHOW(in);
    /* refused: the message that is there is nobody's yet */
    PMPI_Isend(out, 1, MPI_INT, 0, TAG, MPI_COMM_SELF, &request);
    MPI_Sendrecv(out, 1, MPI_INT, 1, TAG, in, 1, MPI_INT, 0, TAG, MPI_COMM_SELF, &status);
    MPI_Sendrecv(out, -1, MPI_INT, 0, TAG, in, 1, MPI_INT, 0, TAG, MPI_COMM_SELF, &status);
    MPI_Sendrecv(out, 1, MPI_INT, 0, TAG, in, 1, MPI_INT, 2, TAG, MPI_COMM_SELF, &status);
    MPI_Probe(0, TAG, MPI_COMM_SELF, &status);
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, &flag, &status);
    MPI_Recv(in, N, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, &status);
    SHOW(in);
    PMPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Iprobe(0, TAG, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE);
    MPI_Iprobe(1, TAG, MPI_COMM_SELF, &flag, &status);
    MPI_Probe(1, TAG, MPI_COMM_SELF, &status);
    MPI_Probe(MPI_PROC_NULL, TAG, MPI_COMM_SELF, &status);
    /* from anybody, and too long */
    for (int turn = 0; turn < 2; ++turn) {
        PMPI_Isend(out, N, MPI_INT, 0, TAG, MPI_COMM_SELF, &request);
        MPI_Recv(in, 1, MPI_INT, MPI_ANY_SOURCE, TAG, MPI_COMM_SELF, turn == 0 ? &status : MPI_STATUS_IGNORE);
        PMPI_Wait(&request, MPI_STATUS_IGNORE);
        PMPI_Isend(out, N, MPI_INT, 0, TAG, MPI_COMM_SELF, &request);
        MPI_Recv(in, N, MPI_INT, MPI_ANY_SOURCE, TAG, MPI_COMM_SELF, turn == 0 ? &status : MPI_STATUS_IGNORE);
        PMPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_Recv(in, -1, MPI_INT, MPI_ANY_SOURCE, TAG, MPI_COMM_SELF, &status);
    MPI_Recv(in, 1, MPI_INT, 0, -9, MPI_COMM_SELF, &status);
    MPI_Recv(in, 1, MPI_INT, 0, TAG, MPI_COMM_NULL, &status);
}

void case_one_of_many(void) {
    int out[N], in[3][N] = {{0}}, index = -1, flag = 0;
    MPI_Status status;
    MPI_Request all[6];
    fill(out, N, 850);
    for (int turn = 0; turn < 2; ++turn) {
        MPI_Status* const said = turn == 0 ? &status : MPI_STATUS_IGNORE;
        for (int i = 0; i < 6; ++i) all[i] = MPI_REQUEST_NULL;
        MPI_Waitany(6, all, &index, said);
        MPI_Testany(6, all, &index, &flag, said);
        PMPI_Irecv(in[0], N, MPI_INT, 0, TAG, MPI_COMM_SELF, &all[1]);
        PMPI_Irecv(in[1], N, MPI_INT, 0, TAG + 1, MPI_COMM_SELF, &all[4]);
        MPI_Testany(6, all, &index, &flag, said);
        PMPI_Isend(out, N, MPI_INT, 0, TAG + 1, MPI_COMM_SELF, &all[5]);
        PMPI_Wait(&all[5], MPI_STATUS_IGNORE);
        MPI_Waitany(6, all, &index, said);
        SHOW(in[1]);
        PMPI_Isend(out + 1, N - 1, MPI_INT, 0, TAG, MPI_COMM_SELF, &all[3]);
        PMPI_Wait(&all[3], MPI_STATUS_IGNORE);
        UNTIL(flag, MPI_Testany(6, all, &index, &flag, said));
        SHOW(in[0]);
        /* a wildcard, one that is too short */
        PMPI_Irecv(in[2], N, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, &all[0]);
        PMPI_Isend(out, N, MPI_INT, 0, TAG, MPI_COMM_SELF, &all[2]);
        PMPI_Wait(&all[2], MPI_STATUS_IGNORE);
        MPI_Waitany(6, all, &index, said);
        PMPI_Irecv(in[2], 1, MPI_INT, 0, TAG, MPI_COMM_SELF, &all[1]);
        PMPI_Isend(out, N, MPI_INT, 0, TAG, MPI_COMM_SELF, &all[5]);
        PMPI_Wait(&all[5], MPI_STATUS_IGNORE);
        if (turn == 0)
            MPI_Waitany(6, all, &index, said);
        else
            UNTIL(flag, MPI_Testany(6, all, &index, &flag, said));
    }
    /* every one of a crowd, in whatever order */
    enum { MANY = 100 };
    MPI_Request crowd[MANY];
    int got[MANY / 2], ended[MANY] = {0}, wrong = 0;
    for (int count = MANY; count >= MANY / 2; count -= MANY / 2) {
        for (int i = 0; i < count / 2; ++i) {
            PMPI_Irecv(&got[i], 1, MPI_INT, left, i, WORLD, &crowd[2 * i]);
            PMPI_Isend(&out[i % N], 1, MPI_INT, right, i, WORLD, &crowd[2 * i + 1]);
        }
        for (int i = 0; i < count; ++i) {
            const size_t here = rec_at();
            MPI_Waitany(count, crowd, &index, i % 2 ? &status : MPI_STATUS_IGNORE);
            rec_rewind(here);
            ended[index]++;
            wrong += crowd[index] != MPI_REQUEST_NULL;
        }
        for (int i = 0; i < count / 2; ++i) wrong += got[i] != 850 + 10 * left + i % N;
    }
    for (int i = 0; i < MANY; ++i) wrong += ended[i] != (i < MANY / 2 ? 2 : 1);
    SHOW1(wrong);
}

void case_started_again(void) {
    int out[N], in[N] = {0}, index = -1, flag = 0, wrong = 0;
    MPI_Request pair[2], request;
    MPI_Status statuses[2], status;
    MPI_Comm comm;
    MPI_Datatype pairs;
    PMPI_Recv_init(in, N, MPI_INT, left, TAG, WORLD, &pair[0]);
    PMPI_Send_init(out, N, MPI_INT, right, TAG, WORLD, &pair[1]);
    for (int turn = 0; turn < 100; ++turn) {
        fill(out, N, 1000 * turn);
        PMPI_Startall(2, pair);
        switch (turn % 4) {
            case 0:
                PMPI_Waitall(2, pair, MPI_STATUSES_IGNORE);
                break;
            case 1:
                PMPI_Waitall(2, pair, statuses);
                wrong += statuses[0].MPI_SOURCE != left || statuses[0].MPI_TAG != TAG;
                break;
            case 2:
                PMPI_Wait(&pair[1], MPI_STATUS_IGNORE);
                PMPI_Wait(&pair[0], &status);
                wrong += status.MPI_SOURCE != left;
                break;
            default:
                PMPI_Waitany(2, pair, &index, &status);
                PMPI_Waitany(2, pair, &index, &status);
        }
        wrong += in[N - 1] != 1000 * turn + 10 * left + N - 1;
        wrong += pair[0] == MPI_REQUEST_NULL || pair[1] == MPI_REQUEST_NULL;
    }
    SHOW1(wrong);
    MPI_Wait(&pair[0], &status); /* inactive */
    MPI_Waitany(2, pair, &index, &status);
    MPI_Testany(2, pair, &index, &flag, &status);
    MPI_Start(&pair[0]);
    MPI_Request_free(&pair[1]);
    PMPI_Barrier(WORLD);
    PMPI_Isend(out, 1, MPI_INT, right, TAG, WORLD, &request);
    UNTIL(flag, MPI_Test(&pair[0], &flag, &status));
    PMPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Request_free(&pair[0]);
    /* freed objects live on; what is too long fails, and can be started again */
    MPI_Comm_dup(MPI_COMM_SELF, &comm);
    MPI_Type_vector(2, 1, 2, MPI_INT, &pairs);
    MPI_Type_commit(&pairs);
    MPI_Recv_init(in, 1, pairs, 0, TAG, comm, &pair[0]);
    MPI_Send_init(out, 1, pairs, 0, TAG, comm, &pair[1]);
    MPI_Type_free(&pairs);
    for (int turn = 0; turn < 3; ++turn) {
        fill(in, N, 0);
        MPI_Startall(2, pair);
        MPI_Waitall(2, pair, statuses);
        SHOW(in);
    }
    MPI_Request_free(&pair[1]);
    for (int turn = 0; turn < 3; ++turn) {
        MPI_Start(&pair[0]);
        PMPI_Isend(out, N, MPI_INT, 0, TAG, comm, &request);
        MPI_Wait(&pair[0], turn == 1 ? MPI_STATUS_IGNORE : &status);
        PMPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_Request_free(&pair[0]);
    MPI_Comm_free(&comm);
    request = MPI_REQUEST_NULL;
    MPI_Start(&request);
}

void case_many_requests(void) {
    int out[3] = {rank, rank + 10, rank + 20}, in[3] = {0}, index = -1, indices[6], done = 0, flag = 0;
    MPI_Request requests[6];
    MPI_Status statuses[6], status;
    for (int round = 0; round < 6; ++round) {
        for (int i = 0; i < 3; ++i) {
            MPI_Irecv(&in[i], 1, MPI_INT, left, i, WORLD, &requests[i]);
            MPI_Isend(&out[i], 1, MPI_INT, right, i, WORLD, &requests[3 + i]);
        }
        switch (round) {
            case 0:
                MPI_Waitall(6, requests, statuses);
                break;
            case 1:
                UNTIL(flag, MPI_Testall(6, requests, &flag, statuses));
                break;
            case 2:
                for (int i = 0; i < 6; ++i) {
                    const size_t here = rec_at();
                    MPI_Waitany(6, requests, &index, &status);
                    rec_rewind(here); /* which one is a matter of luck */
                }
                MPI_Waitany(6, requests, &index, &status);
                break;
            case 3:
                for (int i = 0; i < 6;) {
                    const size_t here = rec_at();
                    MPI_Testany(6, requests, &index, &flag, &status);
                    rec_rewind(here);
                    i += flag && index != MPI_UNDEFINED;
                }
                MPI_Testany(6, requests, &index, &flag, &status);
                break;
            case 4:
                for (int i = 0; i < 6;) {
                    const size_t here = rec_at();
                    MPI_Waitsome(6, requests, &done, indices, statuses);
                    rec_rewind(here);
                    i += done;
                }
                MPI_Waitsome(6, requests, &done, indices, statuses);
                break;
            default:
                for (int i = 0; i < 6;) {
                    const size_t here = rec_at();
                    MPI_Testsome(6, requests, &done, indices, statuses);
                    rec_rewind(here);
                    i += done;
                }
                MPI_Testsome(6, requests, &done, indices, statuses);
        }
        SHOW(in);
        SHOW1(done);
        PMPI_Barrier(WORLD);
    }
    /* one of them, alone, for sure */
    requests[0] = requests[1] = requests[2] = MPI_REQUEST_NULL;
    MPI_Irecv(&in[1], 1, MPI_INT, MPI_PROC_NULL, 1, WORLD, &requests[1]);
    MPI_Waitany(3, requests, &index, &status);
    MPI_Irecv(&in[1], 1, MPI_INT, MPI_PROC_NULL, 1, WORLD, &requests[1]);
    UNTIL(flag, MPI_Testany(3, requests, &index, &flag, &status));
    MPI_Irecv(&in[2], 1, MPI_INT, MPI_PROC_NULL, 1, WORLD, &requests[2]);
    MPI_Waitsome(3, requests, &done, indices, statuses);
    MPI_Irecv(&in[2], 1, MPI_INT, MPI_PROC_NULL, 1, WORLD, &requests[0]);
    UNTIL(done, MPI_Testsome(3, requests, &done, indices, statuses));
    MPI_Waitall(0, NULL, MPI_STATUSES_IGNORE);
    MPI_Testall(0, NULL, &flag, MPI_STATUSES_IGNORE);
    /* an error in one of several */
    MPI_Irecv(&in[0], 1, MPI_INT, rank, 1, WORLD, &requests[0]);
    MPI_Isend(out, 3, MPI_INT, rank, 1, WORLD, &requests[1]);
    MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
    requests[2] = MPI_REQUEST_NULL;
    MPI_Waitall(3, requests, statuses);
    /* MPI-4.1's, where there */
    MPI_Irecv(&in[1], 1, MPI_INT, MPI_PROC_NULL, 1, WORLD, &requests[1]);
    requests[0] = MPI_REQUEST_NULL;
    MPI_Request_get_status_all(2, requests, &flag, statuses);
    MPI_Request_get_status_any(2, requests, &index, &flag, &status);
    MPI_Request_get_status_some(2, requests, &done, indices, statuses);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

void case_persistent_p2p(void) {
    int out = 0, in = 0, flag = 0;
    static char space[2000];
    MPI_Request pair[2];
    MPI_Status statuses[2];
    void* address;
    int bytes;
    PMPI_Buffer_attach(space, sizeof space);
    for (int kind = 0; kind < 4; ++kind) {
        MPI_Recv_init(&in, 1, MPI_INT, left, kind, WORLD, &pair[0]);
        switch (kind) {
            case 0:
                MPI_Send_init(&out, 1, MPI_INT, right, kind, WORLD, &pair[1]);
                break;
            case 1:
                MPI_Ssend_init(&out, 1, MPI_INT, right, kind, WORLD, &pair[1]);
                break;
            case 2:
                MPI_Bsend_init(&out, 1, MPI_INT, right, kind, WORLD, &pair[1]);
                break;
            default:
                MPI_Rsend_init(&out, 1, MPI_INT, right, kind, WORLD, &pair[1]);
        }
        MPI_Test(&pair[0], &flag, &statuses[0]); /* inactive */
        for (int round = 0; round < 3; ++round) {
            out = 100 * rank + 10 * kind + round;
            if (round == 0 && kind != 3) {
                MPI_Startall(2, pair);
            } else {
                MPI_Start(&pair[0]);
                PMPI_Barrier(WORLD);
                MPI_Start(&pair[1]);
            }
            MPI_Waitall(2, pair, statuses);
            SHOW1(in);
        }
        MPI_Request_free(&pair[0]);
        MPI_Request_free(&pair[1]);
    }
    PMPI_Buffer_detach(&address, &bytes);
}

void case_buffered(void) {
    static char space[4096];
    int out[N], in[N] = {0}, bytes = 0;
    void* address = NULL;
    MPI_Request request;
    fill(out, N, 700);
    MPI_Buffer_attach(space, sizeof space);
    MPI_Bsend(out, N, MPI_INT, right, TAG, WORLD);
    MPI_Ibsend(out, N - 1, MPI_INT, right, TAG, WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Recv(in, N, MPI_INT, left, TAG, WORLD, MPI_STATUS_IGNORE);
    SHOW(in);
    MPI_Recv(in, N, MPI_INT, left, TAG, WORLD, MPI_STATUS_IGNORE);
    SHOW(in);
    static int large[4096];
#ifndef OPEN_MPI /* which waits for room that nobody will make */
    MPI_Bsend(large, 4096, MPI_INT, right, TAG, WORLD);
#endif
    MPI_Buffer_detach(&address, &bytes);
    SHOW1(bytes);
    int same = address == space;
    SHOW1(same);
}

static int asked, freed, cancelled;
static int query(void* extra, MPI_Status* status) {
    PMPI_Status_set_elements(status, MPI_INT, *(int*)extra);
    PMPI_Status_set_cancelled(status, cancelled);
    status->MPI_SOURCE = 4, status->MPI_TAG = 5;
    return ++asked, MPI_SUCCESS;
}
static int on_free(void* extra) { return (void)extra, ++freed, MPI_SUCCESS; }
static int on_cancel(void* extra, int complete) {
    return (void)extra, cancelled += 1 + complete, MPI_SUCCESS;
}

void case_generalized(void) {
    int extra = 3, flag;
    MPI_Request request;
    MPI_Status status;
    MPI_Grequest_start(query, on_free, on_cancel, &extra, &request);
    MPI_Test(&request, &flag, &status);
    MPI_Grequest_complete(request);
    MPI_Request_get_status(request, &flag, &status);
    MPI_Wait(&request, &status);
    MPI_Grequest_start(query, on_free, on_cancel, &extra, &request);
    MPI_Cancel(&request);
    MPI_Grequest_complete(request);
    MPI_Wait(&request, &status);
    MPI_Grequest_start(query, on_free, on_cancel, &extra, &request);
    PMPI_Grequest_complete(request);
    MPI_Request_free(&request);
    SHOW1(freed);
    SHOW1(cancelled);
}

void case_partitioned(void) {
    enum { PARTS = 4, EACH = 3 };
    int out[PARTS * EACH], in[PARTS * EACH] = {0}, flag = 0, list[1] = {0};
    MPI_Request pair[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    if (MPI_Psend_init(out, PARTS, EACH, MPI_INT, right, TAG, WORLD, MPI_INFO_NULL, &pair[0]) != MPI_SUCCESS)
        return;
    MPI_Precv_init(in, PARTS, EACH, MPI_INT, left, TAG, WORLD, MPI_INFO_NULL, &pair[1]);
    for (int round = 0; round < 2; ++round) {
        MPI_Startall(2, pair);
        fill(out, PARTS * EACH, 800 + 100 * round);
        MPI_Pready(3, pair[0]);
        MPI_Pready_range(1, 2, pair[0]);
        MPI_Pready_list(1, list, pair[0]);
        UNTIL(flag, MPI_Parrived(pair[1], 2, &flag));
        PMPI_Waitall(2, pair, MPI_STATUSES_IGNORE);
        SHOW(in);
    }
    MPI_Request_free(&pair[0]);
    MPI_Request_free(&pair[1]);
}
