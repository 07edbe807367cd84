/* More cases of `trap`: one object of every maker that the other cases do not hold, alive at the checkpoint,
 * used after it. */
#define HOLD_ELSEWHERE
#include "held.h"

enum { TAG = 21, MOST = 16 };

void use_comm(MPI_Comm* comm) {
    int sum, n, one = rank + 1, expect = size * (size + 1) / 2;
    MPI_Comm_size(*comm, &n);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, *comm);
    CHECK(n != size || sum == expect);
    hash_bytes(&sum, sizeof sum);
    MPI_Comm_free(comm);
}

static int heard;
static void on_comm(MPI_Comm* comm, int* code, ...) { (void)comm, (void)code, ++heard; }
static void on_win(MPI_Win* win, int* code, ...) { (void)win, (void)code, ++heard; }
static void on_file(MPI_File* file, int* code, ...) { (void)file, (void)code, ++heard; }

void held_communicators(void) {
    MPI_Comm with_info, later, node, host, dist, plain;
    MPI_Request request;
    MPI_Info info, twin, got;
    MPI_Group world, some, other, both, parts[3];
    MPI_Errhandler handler, kept;
    int degree = 1, flag, n, ranks[2], range[1][3] = {{0, 0, 1}}, source, weight, target, weight_out;
    char value[40];
    begin();
    ranks[0] = 0, ranks[1] = size - 1;
    MPI_Info_create(&info);
    MPI_Info_set(info, "mpi_assert_no_any_tag", "false");
    MPI_Comm_dup(MPI_COMM_WORLD, &plain);
    MPI_Comm_dup_with_info(plain, info, &with_info);
    MPI_Comm_idup(plain, &later, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Comm_split_type(plain, MPI_COMM_TYPE_SHARED, -rank, MPI_INFO_NULL, &node);
    /* a type that only this library knows: the communicator is one of its group on any */
#ifdef OPEN_MPI
    MPI_Comm_split_type(plain, OMPI_COMM_TYPE_HOST, rank, info, &host);
#else
    MPI_Info_set(info, "nbhd_common_dirname", "/tmp");
    MPI_Comm_split_type(plain, MPIX_COMM_TYPE_NEIGHBORHOOD, rank, info, &host);
    MPI_Info_delete(info, "nbhd_common_dirname");
#endif
    weight = rank + 3;
    MPI_Dist_graph_create(plain, 1, &rank, &degree, &right, &weight, MPI_INFO_NULL, 0, &dist);
    MPI_Info_dup(info, &twin);
    MPI_Comm_get_info(with_info, &got);
    MPI_Comm_create_errhandler(on_comm, &handler);
    MPI_Comm_set_errhandler(later, handler);
    MPI_Comm_get_errhandler(later, &kept);
    MPI_Comm_group(plain, &world);
    MPI_Group_incl(world, 2, ranks, &some);
    MPI_Group_excl(world, 2, ranks, &other);
    MPI_Group_union(some, other, &both);
    MPI_Group_intersection(some, world, &parts[0]);
    MPI_Group_range_excl(world, 1, range, &parts[1]);
    hold();
    MPI_Info_get(twin, "mpi_assert_no_any_tag", 39, value, &flag);
    CHECK(flag && strcmp(value, "false") == 0);
    MPI_Info_get_nkeys(got, &n);
    MPI_Info_free(&got);
    MPI_Info_free(&twin);
    MPI_Info_free(&info);
    heard = 0;
    MPI_Send(&n, 1, MPI_INT, size + 1, 0, later);
    CHECK(heard == 1);
    MPI_Comm_set_errhandler(node, kept);
    MPI_Send(&n, 1, MPI_INT, size + 1, 0, node);
    CHECK(heard == 2);
    MPI_Errhandler_free(&kept);
    MPI_Errhandler_free(&handler);
    MPI_Dist_graph_neighbors(dist, 1, &source, &weight, 1, &target, &weight_out);
    CHECK(source == left && weight == left + 3 && target == right && weight_out == rank + 3);
    MPI_Group_size(both, &n);
    CHECK(n == size);
    MPI_Group_size(parts[0], &n);
    CHECK(n == (size > 1 ? 2 : 1));
    MPI_Group_size(parts[1], &n);
    CHECK(n == size - 1);
    MPI_Group_size(other, &n);
    CHECK(n == size - 2);
    MPI_Group_free(&parts[0]), MPI_Group_free(&parts[1]), MPI_Group_free(&both), MPI_Group_free(&some),
        MPI_Group_free(&other);
    MPI_Group_free(&world);
    MPI_Comm_size(host, &n);
    CHECK(n == size);
    use_comm(&with_info), use_comm(&later), use_comm(&node), use_comm(&host), use_comm(&dist),
        use_comm(&plain);
}

void held_types(void) {
    enum { TYPES = 10, COMMITTED = 8 };
    MPI_Datatype types[TYPES];
    int lengths[3] = {1, 2, 1}, places[3] = {0, 3, 7}, size_now;
    MPI_Aint far[3] = {0, 16, 40};
    MPI_Datatype kinds[3] = {MPI_INT, MPI_FLOAT, MPI_INT};
    begin();
    MPI_Type_contiguous(5, MPI_INT, &types[0]);
    MPI_Type_create_hvector(3, 1, 12, MPI_INT, &types[1]);
    MPI_Type_indexed(3, lengths, places, MPI_INT, &types[2]);
    MPI_Type_create_hindexed(3, lengths, far, MPI_INT, &types[3]);
    MPI_Type_create_indexed_block(3, 2, places, MPI_INT, &types[4]);
    MPI_Type_create_hindexed_block(3, 1, far, MPI_INT, &types[5]);
    MPI_Type_create_struct(3, lengths, far, kinds, &types[6]);
#ifdef MPICH_VERSION /* MPI-1's marks, which Open MPI's mpi.h hides */
    MPI_Datatype marked[3] = {MPI_LB, MPI_INT, MPI_UB};
    MPI_Type_create_struct(3, (int[]){1, 1, 1}, (MPI_Aint[]){-8, 0, 24}, marked, &types[7]);
#else
    MPI_Type_create_resized(MPI_INT, -8, 32, &types[7]);
#endif
    MPI_Type_create_f90_real(12, 200, &types[8]);
    MPI_Type_create_f90_complex(6, 30, &types[9]);
    for (int i = 0; i < COMMITTED; ++i) MPI_Type_commit(&types[i]);
    hold();
    MPI_Aint bounds[2];
    MPI_Datatype twice;
    MPI_Type_contiguous(2, types[7], &twice);
    MPI_Type_get_extent(twice, &bounds[0], &bounds[1]);
    hash_bytes(bounds, sizeof bounds);
    MPI_Type_free(&twice);
    for (int i = 0; i < TYPES; ++i) {
        hash_picked(types[i]);
        MPI_Type_size(types[i], &size_now);
        hash_bytes(&size_now, sizeof size_now);
    }
    for (int i = 0; i < COMMITTED; ++i) MPI_Type_free(&types[i]);
}

/* Every non-blocking collective: begun by rank 0 before the checkpoint, by the others after it. */
void held_collectives(void) {
    enum { KINDS = 17 };
    static int out[KINDS][MOST], in[KINDS][MOST], counts[MOST], places[MOST], bytes[MOST];
    static MPI_Datatype types[MOST];
    MPI_Request q[KINDS];
    MPI_Comm comm = MPI_COMM_WORLD;
    begin();
    for (int i = 0; i < MOST; ++i) counts[i] = 1, places[i] = i, bytes[i] = 4 * i, types[i] = MPI_INT;
    for (int k = 0; k < KINDS; ++k)
        for (int i = 0; i < MOST; ++i) out[k][i] = 1000 * k + 10 * rank + i, in[k][i] = -1;
    for (int turn = 0; turn < 2; ++turn) {
        if ((turn == 0) == (rank == 0)) {
            MPI_Iallgather(out[0], 1, MPI_INT, in[0], 1, MPI_INT, comm, &q[0]);
            MPI_Iallgatherv(out[1], 1, MPI_INT, in[1], counts, places, MPI_INT, comm, &q[1]);
            MPI_Iallreduce(out[2], in[2], 2, MPI_INT, MPI_SUM, comm, &q[2]);
            MPI_Ialltoall(out[3], 1, MPI_INT, in[3], 1, MPI_INT, comm, &q[3]);
            MPI_Ialltoallv(out[4], counts, places, MPI_INT, in[4], counts, places, MPI_INT, comm, &q[4]);
            MPI_Ialltoallw(out[5], counts, bytes, types, in[5], counts, bytes, types, comm, &q[5]);
            MPI_Ibarrier(comm, &q[6]);
            MPI_Ibcast(rank == 1 ? out[7] : in[7], 3, MPI_INT, 1, comm, &q[7]);
            MPI_Iexscan(out[8], in[8], 1, MPI_INT, MPI_SUM, comm, &q[8]);
            MPI_Igather(out[9], 1, MPI_INT, in[9], 1, MPI_INT, 0, comm, &q[9]);
            MPI_Igatherv(out[10], 1, MPI_INT, in[10], counts, places, MPI_INT, 1, comm, &q[10]);
            MPI_Ireduce(out[11], in[11], 2, MPI_INT, MPI_MAX, 0, comm, &q[11]);
            MPI_Ireduce_scatter(out[12], in[12], counts, MPI_INT, MPI_SUM, comm, &q[12]);
            MPI_Ireduce_scatter_block(out[13], in[13], 1, MPI_INT, MPI_SUM, comm, &q[13]);
            MPI_Iscan(out[14], in[14], 1, MPI_INT, MPI_SUM, comm, &q[14]);
            MPI_Iscatter(out[15], 1, MPI_INT, in[15], 1, MPI_INT, 0, comm, &q[15]);
            MPI_Iscatterv(out[16], counts, places, MPI_INT, in[16], 1, MPI_INT, 1, comm, &q[16]);
            if (rank == 0) usleep(100000); /* the library has begun what it can */
        }
        if (turn == 0) hold_here(rank == 0);
    }
    MPI_Waitall(KINDS, q, MPI_STATUSES_IGNORE);
    CHECK(in[0][size - 1] == 10 * (size - 1) && in[3][left] == 3000 + 10 * left + rank);
    CHECK(in[12][0] == 12000 * size + 5 * size * (size - 1) + size * rank);
    hash_bytes(in, sizeof in);
}

void held_neighbours(void) {
    enum { KINDS = 5 };
    int out[KINDS][MOST], in[KINDS][MOST], counts[2] = {1, 1}, places[2] = {0, 1}, dims[1] = {size},
                                           periods[1] = {1};
    MPI_Aint far[2] = {0, 4};
    MPI_Datatype types[2] = {MPI_INT, MPI_INT};
    MPI_Request q[KINDS];
    MPI_Comm ring;
    begin();
    dims[0] = size;
    for (int k = 0; k < KINDS; ++k)
        for (int i = 0; i < MOST; ++i) out[k][i] = 100 * k + 10 * rank + i, in[k][i] = -1;
    MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, 0, &ring);
    for (int turn = 0; turn < 2; ++turn) {
        if ((turn == 0) == (rank == 0)) {
            MPI_Ineighbor_allgather(out[0], 1, MPI_INT, in[0], 1, MPI_INT, ring, &q[0]);
            MPI_Ineighbor_allgatherv(out[1], 1, MPI_INT, in[1], counts, places, MPI_INT, ring, &q[1]);
            MPI_Ineighbor_alltoall(out[2], 1, MPI_INT, in[2], 1, MPI_INT, ring, &q[2]);
            MPI_Ineighbor_alltoallv(out[3], counts, places, MPI_INT, in[3], counts, places, MPI_INT, ring,
                                    &q[3]);
            MPI_Ineighbor_alltoallw(out[4], counts, far, types, in[4], counts, far, types, ring, &q[4]);
        }
        if (turn == 0) hold_here(rank == 0);
    }
    MPI_Waitall(KINDS, q, MPI_STATUSES_IGNORE);
    CHECK(in[0][0] == 10 * left && in[0][1] == 10 * right);
    MPI_Comm_free(&ring);
    hash_bytes(in, sizeof in);
}

/* Sends of every mode and a matched receive, on their way; persistent ones not started. */
void held_messages(void) {
    static char space[4000];
    int out[8], in[8], flag;
    MPI_Request sends[3], matched, ready, pair[2], buffered;
    MPI_Message message;
    void* address;
    begin();
    for (int i = 0; i < 8; ++i) out[i] = 100 * rank + i, in[i] = -1;
    MPI_Buffer_attach(space, sizeof space);
    MPI_Ibsend(&out[0], 1, MPI_INT, right, TAG, MPI_COMM_WORLD, &sends[0]);
    MPI_Isend(&out[1], 1, MPI_INT, right, TAG + 1, MPI_COMM_WORLD, &sends[1]);
    MPI_Irecv(&in[2], 1, MPI_INT, left, TAG + 2, MPI_COMM_WORLD, &ready);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Irsend(&out[2], 1, MPI_INT, right, TAG + 2, MPI_COMM_WORLD, &sends[2]);
    for (flag = 0; !flag;) MPI_Improbe(left, TAG + 1, MPI_COMM_WORLD, &flag, &message, MPI_STATUS_IGNORE);
    MPI_Imrecv(&in[1], 1, MPI_INT, &message, &matched);
    MPI_Bsend_init(&out[3], 1, MPI_INT, right, TAG + 3, MPI_COMM_WORLD, &buffered);
    MPI_Rsend_init(&out[4], 1, MPI_INT, right, TAG + 4, MPI_COMM_WORLD, &pair[0]);
    MPI_Recv_init(&in[4], 1, MPI_INT, left, TAG + 4, MPI_COMM_WORLD, &pair[1]);
    MPI_Request synchronous;
    MPI_Issend(&out[5], 1, MPI_INT, right, TAG + 5, MPI_COMM_WORLD, &synchronous);
    hold();
    MPI_Recv(&in[5], 1, MPI_INT, left, TAG + 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Wait(&synchronous, MPI_STATUS_IGNORE);
    MPI_Wait(&matched, MPI_STATUS_IGNORE);
    MPI_Wait(&ready, MPI_STATUS_IGNORE);
    MPI_Recv(&in[0], 1, MPI_INT, left, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Waitall(3, sends, MPI_STATUSES_IGNORE);
    MPI_Start(&buffered);
    MPI_Wait(&buffered, MPI_STATUS_IGNORE);
    MPI_Recv(&in[3], 1, MPI_INT, left, TAG + 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Start(&pair[1]);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Start(&pair[0]);
    MPI_Waitall(2, pair, MPI_STATUSES_IGNORE);
    for (int i = 0; i < 6; ++i) CHECK(in[i] == 100 * left + i);
    MPI_Request_free(&buffered), MPI_Request_free(&pair[0]), MPI_Request_free(&pair[1]);
    MPI_Buffer_detach(&address, &flag);
    hash_bytes(in, sizeof in);
}

/* A window of each kind with data in it; where the library has none the others are held. */
void held_windows(void) {
    MPI_Win wins[4];
    long *mine = calloc(8, sizeof *mine), *memory[4] = {mine, NULL, NULL, NULL}, value, *theirs;
    MPI_Errhandler handler;
    MPI_Aint bytes;
    int unit;
    begin();
    MPI_Win_create(mine, 64, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &wins[0]);
    MPI_Win_allocate(64, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &memory[1], &wins[1]);
    MPI_Win_allocate_shared(64, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &memory[2], &wins[2]);
    for (int i = 0; i < 3; ++i) {
        for (int j = 0; j < 8; ++j) memory[i][j] = 100 * rank + 10 * i + j;
        MPI_Win_fence(0, wins[i]);
        value = 7000 + rank;
        MPI_Put(&value, 1, MPI_LONG, right, 1, 1, MPI_LONG, wins[i]);
        MPI_Win_fence(0, wins[i]);
    }
    MPI_Win_create_errhandler(on_win, &handler);
    MPI_Win_set_errhandler(wins[1], handler);
    hold();
    for (int i = 0; i < 3; ++i) {
        CHECK(memory[i][1] == 7000 + left && memory[i][7] == 100 * rank + 10 * i + 7);
        MPI_Win_fence(0, wins[i]);
        value = 8000 + rank;
        MPI_Put(&value, 1, MPI_LONG, right, 2, 1, MPI_LONG, wins[i]);
        MPI_Accumulate(&value, 1, MPI_LONG, 0, 3, 1, MPI_LONG, MPI_SUM, wins[i]);
        MPI_Win_fence(0, wins[i]);
        CHECK(memory[i][2] == 8000 + left);
        hash_bytes(memory[i], 64);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Win_shared_query(wins[2], right, &bytes, &unit, &theirs);
    CHECK(bytes == 64 && unit == 8 && theirs[2] == 8000 + rank);
    heard = 0;
    MPI_Win_call_errhandler(wins[1], MPI_ERR_ASSERT);
    CHECK(heard == 1);
    MPI_Errhandler_free(&handler);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < 3; ++i) MPI_Win_free(&wins[i]);
    free(mine);
}

/* Passive epochs with operations on their way: of everybody on a neighbour, of everybody on all, and of rank
 * 0 alone, whose locks the others have to grant when they have nothing else to do (at a restart, too). */
void held_locks(void) {
    MPI_Win wins[3];
    long *memory[3], values[3];
    begin();
    for (int i = 0; i < 3; ++i) {
        MPI_Win_allocate(64, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &memory[i], &wins[i]);
        for (int j = 0; j < 8; ++j) memory[i][j] = 100 * rank + 10 * i + j;
        values[i] = 1000 * (i + 1) + rank;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, right, 0, wins[0]);
    MPI_Put(&values[0], 1, MPI_LONG, right, 1, 1, MPI_LONG, wins[0]);
    MPI_Win_lock_all(0, wins[1]);
    MPI_Put(&values[1], 1, MPI_LONG, right, 1, 1, MPI_LONG, wins[1]);
    for (int target = 0; target < size && rank == 0; ++target) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, wins[2]);
        MPI_Put(&values[2], 1, MPI_LONG, target, 1, 1, MPI_LONG, wins[2]);
    }
    hold();
    MPI_Accumulate(&values[0], 1, MPI_LONG, right, 1, 1, MPI_LONG, MPI_SUM, wins[0]);
    MPI_Win_unlock(right, wins[0]);
    MPI_Accumulate(&values[1], 1, MPI_LONG, right, 1, 1, MPI_LONG, MPI_SUM, wins[1]);
    MPI_Win_unlock_all(wins[1]);
    for (int target = 0; target < size && rank == 0; ++target) {
        MPI_Accumulate(&values[2], 1, MPI_LONG, target, 1, 1, MPI_LONG, MPI_SUM, wins[2]);
        MPI_Win_unlock(target, wins[2]);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < 3; ++i) {
        MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, wins[i]);
        CHECK(memory[i][1] == 2 * (1000 * (i + 1) + (i == 2 ? 0 : left)));
        hash_bytes(memory[i], 64);
        MPI_Win_unlock(rank, wins[i]);
    }
    for (int i = 0; i < 3; ++i) MPI_Win_free(&wins[i]);
}

/* The library's own memory, shared by the processes of the node. With Open MPI a neighbour's atomic operation
 * arrives while its target computes; MPICH needs the target's help, also natively. The last rank has none of
 * the memory. */
void passive_target(void) {
    enum { N = 100002 };  // MPICH wants bases at multiples of 16, natively (docs/internals/objects.md)
    MPI_Win win;
    long *memory = NULL, one = 1, old = -1;
    begin();
    int mine = rank < size - 1 ? N : 0, flag;
    MPI_Win_allocate(mine * (MPI_Aint)sizeof *memory, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &memory,
                     &win);
    for (int i = 0; i < mine; ++i) memory[i] = 1000000L * rank * (i > 0) + i;
    MPI_Win_lock_all(0, win);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        MPI_Fetch_and_op(&one, &old, MPI_LONG, 1, 0, MPI_SUM, win);
        MPI_Win_flush(1, win);
        CHECK(old == 0);
    }
    if (rank == 1) {
        volatile long* word = memory;
        for (double end = MPI_Wtime() + 20; *word == 0 && MPI_Wtime() < end;) {
#ifndef OPEN_MPI
            MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
#endif
        }
        CHECK(*word == 1);
    }
    (void)flag;
    hold();
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank < 2) MPI_Fetch_and_op(&one, &old, MPI_LONG, 2, 0, MPI_SUM, win);
    MPI_Win_unlock_all(win);
    MPI_Barrier(MPI_COMM_WORLD);
    if (mine > 0) CHECK(memory[0] == (rank == 0 ? 0 : rank));
    for (int i = 1; i < mine; ++i) CHECK(memory[i] == 1000000L * rank + i);
    if (mine > 0) hash_bytes(memory, mine * sizeof *memory);
    MPI_Win_free(&win);
}

/* A file with a view and all its pointers somewhere. */
void held_files(void) {
    MPI_File file;
    MPI_Datatype every;
    MPI_Errhandler handler;
    MPI_Offset at;
    MPI_Status status;
    int out[4], in[8], count;
    begin();
    for (int i = 0; i < 4; ++i) out[i] = 10 * rank + i;
    MPI_File_open(MPI_COMM_WORLD, "held_files.dat", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    MPI_File_set_size(file, 0);
    MPI_Type_create_resized(MPI_INT, 0, 4 * size, &every);
    MPI_Type_commit(&every);
    MPI_File_set_view(file, 4 * rank, MPI_INT, every, "native", MPI_INFO_NULL);
    MPI_Type_free(&every);
    MPI_File_write_all(file, out, 3, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_create_errhandler(on_file, &handler);
    MPI_File_set_errhandler(file, handler);
    MPI_File_get_position(file, &at);
    CHECK(at == 3);
    MPI_File_write_all_begin(file, &out[3], 1, MPI_INT);
    hold();
    MPI_File_write_all_end(file, &out[3], &status);
    MPI_Get_count(&status, MPI_INT, &count);
    CHECK(count == 1);
    MPI_File_get_position(file, &at);
    CHECK(at == 4);
    MPI_File_seek(file, 0, MPI_SEEK_SET);
    MPI_File_read_all(file, in, 4, MPI_INT, MPI_STATUS_IGNORE);
    for (int i = 0; i < 4; ++i) CHECK(in[i] == out[i]);
    heard = 0;
    MPI_File_call_errhandler(file, MPI_ERR_IO);
    CHECK(heard == 1);
    MPI_Errhandler_free(&handler);
    MPI_File_close(&file);
    /* The file stays: whoever continues from the checkpoint opens it again. */
    hash_bytes(in, 16);
}

#ifndef OPEN_MPI
/* What Open MPI 4.1.4 lacks natively: persistent collectives (one started on rank 0 only), partitioned
 * messages. */
void held_persistent(void) {
    enum { PARTS = 4 };
    MPI_Request q[6], parted[2];
    MPI_Comm again;
    int a, b = -1, c, d = -1, e = -1, out[PARTS], in[PARTS];
    begin();
    MPI_Allreduce_init(&a, &b, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &q[0]);
    MPI_Bcast_init(&c, 1, MPI_INT, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &q[1]);
    /* (Not those that copy locally: MPICH 4.0.2 does it when they are made, not when they are started.) */
    MPI_Reduce_init(&a, &d, 1, MPI_INT, MPI_MAX, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &q[2]);
    MPI_Scan_init(&a, &e, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &q[3]);
    MPI_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, &q[4]);
    MPI_Comm_idup_with_info(MPI_COMM_WORLD, MPI_INFO_NULL, &again, &q[5]);
    MPI_Wait(&q[5], MPI_STATUS_IGNORE);
    MPI_Psend_init(out, PARTS, 1, MPI_INT, right, TAG, MPI_COMM_WORLD, MPI_INFO_NULL, &parted[0]);
    MPI_Precv_init(in, PARTS, 1, MPI_INT, left, TAG, MPI_COMM_WORLD, MPI_INFO_NULL, &parted[1]);
    MPI_Startall(2, parted);
    for (int i = 0; i < PARTS; ++i) out[i] = 100 * rank + i, in[i] = -1;
    MPI_Pready(2, parted[0]);
    a = rank + 1, c = rank == 0 ? 55 : 0;
    if (rank == 0) MPI_Start(&q[0]), MPI_Start(&q[1]);
    hold_here(rank == 0);
    if (rank != 0) MPI_Start(&q[0]), MPI_Start(&q[1]);
    MPI_Waitall(2, q, MPI_STATUSES_IGNORE);
    CHECK(b == size * (size + 1) / 2 && c == 55);
    for (int round = 0; round < 2; ++round) {
        a = rank + 10 * round;
        for (int i = 2; i < 5; ++i) MPI_Start(&q[i]), MPI_Wait(&q[i], MPI_STATUS_IGNORE);
        CHECK(rank != 0 || d == size - 1 + 10 * round);
        CHECK(e == rank * (rank + 1) / 2 + 10 * round * (rank + 1));
    }
    MPI_Pready_range(0, 1, parted[0]);
    MPI_Pready(3, parted[0]);
    MPI_Waitall(2, parted, MPI_STATUSES_IGNORE);
    for (int i = 0; i < PARTS; ++i) CHECK(in[i] == 100 * left + i);
    for (int i = 0; i < 5; ++i) MPI_Request_free(&q[i]);
    MPI_Request_free(&parted[0]), MPI_Request_free(&parted[1]);
    use_comm(&again);
    hash_bytes(&d, sizeof d);
}

static void on_session(MPI_Session* session, int* code, ...) { (void)session, (void)code, ++heard; }

/* A program of the sessions model only: no MPI_Init. Says itself whether it is right. */
void sessions_only(void) {
    MPI_Session session, second;
    MPI_Group group, odd, even;
    MPI_Comm comm, inter;
    MPI_Info asked, of_set;
    MPI_Errhandler handler, kept;
    char value[40];
    int flag, sum, n, length = sizeof value, range[1][3] = {{0, 0, 2}}, other[1][3] = {{1, 0, 2}};
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
    MPI_Session_create_errhandler(on_session, &handler); /* MPICH 4.0.2 wants a session for it */
    MPI_Session_set_errhandler(session, handler);
    MPI_Session_get_errhandler(session, &kept);
    MPI_Session_get_info(session, &asked);
    MPI_Session_get_pset_info(session, "mpi://WORLD", &of_set);
    MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
    MPI_Group_rank(group, &rank);
    MPI_Group_size(group, &size);
    MPI_Comm_create_from_group(group, "all", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
    range[0][1] = other[0][1] = size - 1;
    MPI_Group_range_incl(group, 1, range, &even);
    MPI_Group_range_incl(group, 1, other, &odd);
    MPI_Intercomm_create_from_groups(rank % 2 ? odd : even, 0, rank % 2 ? even : odd, 0, "between",
                                     MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &inter);
    MPI_Barrier(comm);
    hold_here(rank == 0);
    MPI_Initialized(&flag);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm);
    MPI_Comm_remote_size(inter, &n);
    flag = !flag && sum == size * (size - 1) / 2 && n == size / 2;
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, inter);
    flag = flag && sum == size / 2 * (size / 2 - 1) + (rank % 2 ? 0 : size / 2);
    MPI_Group_size(odd, &n);
    flag = flag && n == size / 2;
    heard = 0;
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &second);
    MPI_Session_set_errhandler(second, kept);
    MPI_Session_call_errhandler(second, MPI_ERR_ARG);
    MPI_Session_call_errhandler(session, MPI_ERR_ARG);
    flag = flag && heard == 2;
    MPI_Session_finalize(&second);
    MPI_Info_get_nkeys(asked, &n);
    MPI_Info_get_string(of_set, "mpi_size", &length, value, &n);
    flag = flag && n && atoi(value) == size;
    MPI_Info_free(&asked), MPI_Info_free(&of_set);
    MPI_Errhandler_free(&handler), MPI_Errhandler_free(&kept);
    MPI_Allreduce(&flag, &n, 1, MPI_INT, MPI_MIN, comm);
    if (rank == 0) printf("sessions_only: %s\n", n ? "right" : "wrong");
    MPI_Comm_free(&inter);
    MPI_Comm_free(&comm);
    MPI_Group_free(&odd), MPI_Group_free(&even), MPI_Group_free(&group);
    MPI_Session_finalize(&session);
}
#endif
