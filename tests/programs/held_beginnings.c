/* Cases of `trap`: what rank 0 begins before the checkpoint and the others after it - sends with their
 * receives, persistent collectives; requests of duplicates of communicators; messages matched by MPI_Improbe.
 */
#define HOLD_ELSEWHERE
#include "held.h"

enum { TAG = 31, MOST = 16 };

static MPI_Message matched(int tag) {
    MPI_Message message;
    for (int flag = 0; !flag;) MPI_Improbe(left, tag, MPI_COMM_WORLD, &flag, &message, MPI_STATUS_IGNORE);
    return message;
}

void held_beginnings(void) {
    MPI_Comm half, inter, duplicate, of_half;
    MPI_Group remote;
    MPI_Request sends[2], received, begun[5];
    MPI_Message first, second;
    int out[2], in[2] = {-1, -1}, n, count = 0;
#ifndef OPEN_MPI /* Open MPI 4.1.4 lacks them */
    MPI_Comm hinted;
    MPI_Info environment;
    int one, other = -1, exchanged;
#endif
    begin();
    for (int i = 0; i < 2; ++i) {
        out[i] = 100 * rank + i;
        MPI_Isend(&out[i], 1, MPI_INT, right, TAG + i, MPI_COMM_WORLD, &sends[i]);
    }
    first = matched(TAG), second = matched(TAG + 1);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank % 2, TAG, &inter);
    MPI_Comm_remote_group(inter, &remote);
#ifndef OPEN_MPI
    MPI_Info_create_env(0, NULL, &environment);
    one = 300 + rank, exchanged = 400 + rank;
#endif
    /* A checkpoint waits until all members have begun these, as for a blocking creation. */
    MPI_Comm_idup(MPI_COMM_WORLD, &duplicate, &begun[count++]);
    MPI_Comm_idup(half, &of_half, &begun[count++]);
#ifndef OPEN_MPI
    MPI_Comm_idup_with_info(MPI_COMM_WORLD, MPI_INFO_NULL, &hinted, &begun[count++]);
#endif
    MPI_Barrier(MPI_COMM_WORLD);
    for (int turn = 0; turn < 2; ++turn) {
#ifndef OPEN_MPI
        if ((turn == 0) == (rank == 0)) {
            MPI_Isendrecv(&one, 1, MPI_INT, right, TAG + 2, &other, 1, MPI_INT, left, TAG + 2, MPI_COMM_WORLD,
                          &begun[count++]);
            MPI_Isendrecv_replace(&exchanged, 1, MPI_INT, right, TAG + 3, left, TAG + 3, MPI_COMM_WORLD,
                                  &begun[count++]);
        }
#endif
        if (turn == 0) hold_here(rank == 0);
    }
    MPI_Waitall(count, begun, MPI_STATUSES_IGNORE);
    MPI_Imrecv(&in[1], 1, MPI_INT, &second, &received);
    MPI_Mrecv(&in[0], 1, MPI_INT, &first, MPI_STATUS_IGNORE);
    MPI_Wait(&received, MPI_STATUS_IGNORE);
    CHECK(first == MPI_MESSAGE_NULL && second == MPI_MESSAGE_NULL);
    CHECK(in[0] == 100 * left && in[1] == 100 * left + 1);
    MPI_Waitall(2, sends, MPI_STATUSES_IGNORE);
    use_comm(&duplicate);
    MPI_Comm_size(of_half, &n);
    CHECK(n == (size + 1 - rank % 2) / 2);
    use_comm(&of_half);
    int ranks[1] = {0}, of_world[1];
    MPI_Group world;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_translate_ranks(remote, 1, ranks, world, of_world);
    CHECK(of_world[0] == 1 - rank % 2);
    MPI_Group_free(&world), MPI_Group_free(&remote);
    MPI_Comm_free(&inter), MPI_Comm_free(&half);
#ifndef OPEN_MPI
    use_comm(&hinted);
    CHECK(other == 300 + left && exchanged == 400 + left);
    MPI_Info_get_nkeys(environment, &n);
    MPI_Info_free(&environment);
    hash_bytes(&other, sizeof other), hash_bytes(&exchanged, sizeof exchanged);
#endif
    hash_bytes(in, sizeof in);
}

#ifndef OPEN_MPI
/* The persistent collectives that held_persistent does not have. What is sent is there when they are made:
 * those that copy locally do it then in MPICH 4.0.2. They are started twice, but MPI_Scatter_init, of which
 * it natively takes one start. */
void held_inits(void) {
    enum { KINDS = 12 };
    static int out[KINDS][MOST], in[KINDS][MOST], counts[MOST], places[MOST], bytes[MOST];
    static MPI_Datatype types[MOST];
    MPI_Request q[KINDS];
    MPI_Comm comm = MPI_COMM_WORLD;
    MPI_Info none = MPI_INFO_NULL;
    begin();
    for (int i = 0; i < MOST; ++i) counts[i] = 1, places[i] = i, bytes[i] = 4 * i, types[i] = MPI_INT;
    for (int k = 0; k < KINDS; ++k)
        for (int i = 0; i < MOST; ++i) out[k][i] = 1000 * k + 10 * rank + i, in[k][i] = -1;
    MPI_Allgather_init(out[0], 1, MPI_INT, in[0], 1, MPI_INT, comm, none, &q[0]);
    MPI_Allgatherv_init(out[1], 1, MPI_INT, in[1], counts, places, MPI_INT, comm, none, &q[1]);
    MPI_Alltoall_init(out[2], 1, MPI_INT, in[2], 1, MPI_INT, comm, none, &q[2]);
    MPI_Alltoallv_init(out[3], counts, places, MPI_INT, in[3], counts, places, MPI_INT, comm, none, &q[3]);
    MPI_Alltoallw_init(out[4], counts, bytes, types, in[4], counts, bytes, types, comm, none, &q[4]);
    MPI_Exscan_init(out[5], in[5], 1, MPI_INT, MPI_SUM, comm, none, &q[5]);
    MPI_Gather_init(out[6], 1, MPI_INT, in[6], 1, MPI_INT, 0, comm, none, &q[6]);
    MPI_Reduce_scatter_block_init(out[7], in[7], 1, MPI_INT, MPI_SUM, comm, none, &q[7]);
    MPI_Reduce_scatter_init(out[8], in[8], counts, MPI_INT, MPI_SUM, comm, none, &q[8]);
    MPI_Scatterv_init(out[9], counts, places, MPI_INT, in[9], 1, MPI_INT, 1, comm, none, &q[9]);
    MPI_Gatherv_init(out[10], 1, MPI_INT, in[10], counts, places, MPI_INT, 1, comm, none, &q[10]);
    MPI_Scatter_init(out[11], 1, MPI_INT, in[11], 1, MPI_INT, 0, comm, none, &q[11]);
    if (rank == 0) MPI_Startall(KINDS, q);
    hold_here(rank == 0);
    for (int round = 0; round < 2; ++round) {
        if (rank != 0 || round > 0) MPI_Startall(round == 0 ? KINDS : KINDS - 1, q);
        MPI_Waitall(KINDS, q, MPI_STATUSES_IGNORE);
        for (int k = 0; k < 2; ++k)
            for (int i = 0; i < size; ++i) CHECK(in[k][i] == 1000 * k + 10 * i);
        for (int k = 2; k < 5; ++k)
            for (int i = 0; i < size; ++i) CHECK(in[k][i] == 1000 * k + 10 * i + rank);
        CHECK(rank == 0 || in[5][0] == 5000 * rank + 5 * rank * (rank - 1));
        for (int i = 0; i < size && rank == 0; ++i) CHECK(in[6][i] == 6000 + 10 * i);
        for (int k = 7; k < 9; ++k) CHECK(in[k][0] == size * (1000 * k + rank) + 5 * size * (size - 1));
        CHECK(in[9][0] == 9010 + rank && in[11][0] == 11000 + rank);
        for (int i = 0; i < size && rank == 1; ++i) CHECK(in[10][i] == 10000 + 10 * i);
    }
    for (int k = 0; k < KINDS; ++k) MPI_Request_free(&q[k]);
    hash_bytes(in, sizeof in);
}

void held_neighbour_inits(void) {
    enum { KINDS = 5 };
    static int out[KINDS][2], in[KINDS][2], counts[2] = {1, 1}, places[2] = {0, 1};
    static MPI_Aint far[2] = {0, 4};
    static MPI_Datatype types[2];
    MPI_Request q[KINDS];
    MPI_Comm ring;
    MPI_Info none = MPI_INFO_NULL;
    int dims[1], periods[1] = {1};
    begin();
    dims[0] = size;
    types[0] = types[1] = MPI_INT;
    for (int k = 0; k < KINDS; ++k)
        for (int i = 0; i < 2; ++i) out[k][i] = 100 * k + 10 * rank + i, in[k][i] = -1;
    MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, 0, &ring);
    MPI_Neighbor_allgather_init(out[0], 1, MPI_INT, in[0], 1, MPI_INT, ring, none, &q[0]);
    MPI_Neighbor_allgatherv_init(out[1], 1, MPI_INT, in[1], counts, places, MPI_INT, ring, none, &q[1]);
    MPI_Neighbor_alltoall_init(out[2], 1, MPI_INT, in[2], 1, MPI_INT, ring, none, &q[2]);
    MPI_Neighbor_alltoallv_init(out[3], counts, places, MPI_INT, in[3], counts, places, MPI_INT, ring, none,
                                &q[3]);
    MPI_Neighbor_alltoallw_init(out[4], counts, far, types, in[4], counts, far, types, ring, none, &q[4]);
    if (rank == 0) MPI_Startall(KINDS, q);
    hold_here(rank == 0);
    for (int round = 0; round < 2; ++round) {
        if (rank != 0 || round > 0) MPI_Startall(KINDS, q);
        MPI_Waitall(KINDS, q, MPI_STATUSES_IGNORE);
        /* Towards the left is each one's first neighbour, so what comes from there was that one's second. */
        for (int k = 0; k < KINDS; ++k) {
            int second = k < 2 ? 0 : 1;
            CHECK(in[k][0] == 100 * k + 10 * left + second && in[k][1] == 100 * k + 10 * right);
        }
    }
    for (int k = 0; k < KINDS; ++k) MPI_Request_free(&q[k]);
    MPI_Comm_free(&ring);
    hash_bytes(in, sizeof in);
}
#endif
