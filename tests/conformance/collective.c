#include "cases.h"

enum { N = 3, MOST = 64 };

static int out[MOST * N], in[MOST * N], counts[MOST], places[MOST];
static MPI_Datatype types[MOST];

static void prepare(int base) {
    for (int i = 0; i < size * N; ++i) out[i] = base + 100 * rank + i, in[i] = -1;
    for (int i = 0; i < size; ++i) counts[i] = i % 2 + 1, places[i] = N * i, types[i] = MPI_INT;
}
#define RESULT rec_show("in", in, size* N, 4)

void case_collectives(void) {
    prepare(1);
    MPI_Barrier(WORLD);
    if (rank == size - 1) memcpy(in, out, sizeof in);
    MPI_Bcast(in, N, MPI_INT, size - 1, WORLD), RESULT;
    prepare(2), MPI_Gather(out, N, MPI_INT, in, N, MPI_INT, 0, WORLD), RESULT;
    prepare(3), MPI_Scatter(out, N, MPI_INT, in, N, MPI_INT, size - 1, WORLD), RESULT;
    prepare(4), MPI_Allgather(out, N, MPI_INT, in, N, MPI_INT, WORLD), RESULT;
    prepare(5), MPI_Alltoall(out, N, MPI_INT, in, N, MPI_INT, WORLD), RESULT;
    prepare(6), memcpy(in, out, sizeof in),
        MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, in, N, MPI_INT, WORLD), RESULT;
    prepare(7), memcpy(in, out, sizeof in),
        MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, in, N, MPI_INT, WORLD), RESULT;
    prepare(8), memcpy(in, out, sizeof in);
    MPI_Gather(rank == 0 ? MPI_IN_PLACE : out, N, MPI_INT, in, N, MPI_INT, 0, WORLD), RESULT;
    MPI_Bcast(in, N, MPI_INT, size, WORLD);
    MPI_Bcast(in, -1, MPI_INT, 0, WORLD);
    MPI_Barrier(MPI_COMM_NULL);
    MPI_Allreduce(out, in, 1, MPI_INT, MPI_OP_NULL, WORLD);
}

/* What does not count here may be anything. */
void case_not_significant(void) {
    MPI_Datatype junk;
    MPI_Request request;
    memset(&junk, 0x5a, sizeof junk);
    const int root = size - 1;
    MPI_Datatype at_root = rank == root ? MPI_INT : junk;
    prepare(81), MPI_Gather(out, N, MPI_INT, in, N, at_root, root, WORLD), RESULT;
    prepare(82), MPI_Scatter(out, N, at_root, in, N, MPI_INT, root, WORLD), RESULT;
    prepare(83), MPI_Gatherv(out, counts[rank], MPI_INT, in, counts, places, at_root, root, WORLD), RESULT;
    prepare(84), MPI_Scatterv(out, counts, places, at_root, in, counts[rank], MPI_INT, root, WORLD), RESULT;
    prepare(85), MPI_Igather(out, N, MPI_INT, in, N, at_root, root, WORLD, &request),
        MPI_Wait(&request, MPI_STATUS_IGNORE), RESULT;
    prepare(86), MPI_Iscatter(out, N, at_root, in, N, MPI_INT, root, WORLD, &request),
        MPI_Wait(&request, MPI_STATUS_IGNORE), RESULT;
    prepare(87), memcpy(in, out, sizeof in), MPI_Allgather(MPI_IN_PLACE, 0, junk, in, N, MPI_INT, WORLD),
        RESULT;
    prepare(88), memcpy(in, out, sizeof in);
    if (rank == root)
        MPI_Gather(MPI_IN_PLACE, 0, junk, in, N, MPI_INT, root, WORLD), RESULT;
    else
        MPI_Gather(out, N, MPI_INT, NULL, -1, junk, root, WORLD), RESULT;
    int bytes[MOST];
    for (int i = 0; i < size; ++i) bytes[i] = (int)sizeof(int) * places[i];
    prepare(89), memcpy(in, out, sizeof in);
    for (int i = 0; i < size; ++i) counts[i] = 1;
    MPI_Alltoallw(MPI_IN_PLACE, NULL, NULL, (void*)(size_t)0x5a5a5a5a5a5a5a50, in, counts, bytes, types,
                  WORLD),
        RESULT;
    /* The group of all but the last rank meets the last one. */
    MPI_Comm half, between, peer;
    if (size < 2) return;
    memset(&peer, 0x5a, sizeof peer);
    PMPI_Comm_split(WORLD, rank == root, rank, &half);
    if (rank == 0 || rank == root) peer = WORLD;
    MPI_Intercomm_create(half, 0, peer, rank == root ? 0 : root, 5, &between);
    PMPI_Comm_free(&between);
    PMPI_Comm_free(&half);
}

void case_vectors(void) {
    prepare(11), MPI_Gatherv(out, counts[rank], MPI_INT, in, counts, places, MPI_INT, 0, WORLD), RESULT;
    prepare(12), MPI_Scatterv(out, counts, places, MPI_INT, in, counts[rank], MPI_INT, 0, WORLD), RESULT;
    prepare(13), MPI_Allgatherv(out, counts[rank], MPI_INT, in, counts, places, MPI_INT, WORLD), RESULT;
    prepare(14);
    int sends[MOST], receives[MOST];
    for (int i = 0; i < size; ++i)
        sends[i] = counts[(rank + i) % size], receives[i] = counts[(rank + i) % size];
    MPI_Alltoallv(out, sends, places, MPI_INT, in, receives, places, MPI_INT, WORLD), RESULT;
    prepare(15);
    int bytes[MOST];
    for (int i = 0; i < size; ++i) bytes[i] = (int)sizeof(int) * places[i];
    MPI_Alltoallw(out, sends, bytes, types, in, receives, bytes, types, WORLD), RESULT;
}

void case_reductions(void) {
    prepare(21), MPI_Reduce(out, in, N, MPI_INT, MPI_SUM, 0, WORLD), RESULT;
    prepare(22), MPI_Allreduce(out, in, N, MPI_INT, MPI_MAX, WORLD), RESULT;
    prepare(23), MPI_Scan(out, in, N, MPI_INT, MPI_SUM, WORLD), RESULT;
    prepare(24), MPI_Exscan(out, in, N, MPI_INT, MPI_SUM, WORLD), RESULT;
    prepare(25), MPI_Reduce_scatter(out, in, counts, MPI_INT, MPI_SUM, WORLD), RESULT;
    prepare(26), MPI_Reduce_scatter_block(out, in, N, MPI_INT, MPI_SUM, WORLD), RESULT;
    prepare(27), memcpy(in, out, sizeof in), MPI_Allreduce(MPI_IN_PLACE, in, N, MPI_INT, MPI_BXOR, WORLD),
        RESULT;
    prepare(28), memcpy(in, out, sizeof in), MPI_Reduce_local(out, in, N, MPI_INT, MPI_SUM), RESULT;
    /* every predefined operation on whole numbers */
    MPI_Op all[] = {MPI_MAX,  MPI_MIN, MPI_SUM, MPI_PROD, MPI_LAND,
                    MPI_BAND, MPI_LOR, MPI_BOR, MPI_LXOR, MPI_BXOR};
    for (size_t i = 0; i < sizeof all / sizeof *all; ++i)
        prepare(29), MPI_Allreduce(out, in, N, MPI_INT, all[i], WORLD), RESULT;
    struct {
        int value, index;
    } a[2] = {{rank % 2, rank}, {7, rank}}, b[2];
    MPI_Allreduce(a, b, 2, MPI_2INT, MPI_MAXLOC, WORLD);
    rec_show("maxloc", b, 4, 4);
    MPI_Allreduce(a, b, 2, MPI_2INT, MPI_MINLOC, WORLD);
    rec_show("minloc", b, 4, 4);
    double x[2] = {0.1 * (rank + 1), 1e300}, y[2];
    MPI_Allreduce(x, y, 2, MPI_DOUBLE, MPI_SUM, WORLD);
    rec_show("sums", y, 2, 8);
    MPI_Allreduce(x, y, 2, MPI_DOUBLE, MPI_BAND, WORLD); /* not defined for floating point */
    short s = (short)(rank + 1), t = 0;
    MPI_Allreduce(&s, &t, 1, MPI_SHORT, MPI_PROD, WORLD);
    SHOW1(t);
    unsigned char c = (unsigned char)(1 << rank), d = 0;
    MPI_Allreduce(&c, &d, 1, MPI_UNSIGNED_CHAR, MPI_BOR, WORLD);
    SHOW1(d);
}

/* Not commutative: 2x2 matrices modulo 1009. */
static void multiply(void* a, void* b, int* n, MPI_Datatype* type) {
    (void)type;
    for (int i = 0; i < *n; ++i) {
        int *x = (int*)a + 4 * i, *y = (int*)b + 4 * i;
        int z[4] = {x[0] * y[0] + x[1] * y[2], x[0] * y[1] + x[1] * y[3], x[2] * y[0] + x[3] * y[2],
                    x[2] * y[1] + x[3] * y[3]};
        for (int j = 0; j < 4; ++j) y[j] = z[j] % 1009;
    }
}
static void multiply_large(void* a, void* b, MPI_Count* n, MPI_Datatype* type) {
    int small = (int)*n;
    multiply(a, b, &small, type);
}

void case_own_operations(void) {
    MPI_Datatype matrix;
    MPI_Op op, large;
    int mine[8] = {rank + 1, 2, 3, rank + 4, 5, rank + 6, 7, 8}, result[8] = {0}, commutes;
    MPI_Type_contiguous(4, MPI_INT, &matrix);
    MPI_Type_commit(&matrix);
    MPI_Op_create(multiply, 0, &op);
    MPI_Op_commutative(op, &commutes);
    MPI_Op_commutative(MPI_SUM, &commutes);
    MPI_Reduce(mine, result, 2, matrix, op, 0, WORLD);
    SHOW(result);
    MPI_Allreduce(mine, result, 2, matrix, op, WORLD);
    SHOW(result);
    memset(result, 0, sizeof result);
    MPI_Scan(mine, result, 2, matrix, op, WORLD);
    SHOW(result);
    MPI_Exscan(mine, result, 1, matrix, op, WORLD);
    SHOW(result);
    MPI_Reduce_local(mine, result, 2, matrix, op);
    SHOW(result);
    if (rec_mode == REC_PLAIN && MPI_Op_create_c((void*)multiply_large, 0, &large) == MPI_SUCCESS) {
        MPI_Allreduce(mine, result, 2, matrix, large, WORLD);
        SHOW(result);
        MPI_Op_free(&large);
    }
    MPI_Op_free(&op);
    MPI_Op_free(&op);
    MPI_Type_free(&matrix);
}

void case_inter_collectives(void) {
    MPI_Comm half, inter;
    int odd = rank % 2, root, remote;
    MPI_Comm_split(WORLD, odd, rank, &half);
    MPI_Intercomm_create(half, 0, WORLD, odd ? 0 : 1, 3, &inter);
    MPI_Comm_remote_size(inter, &remote);
    MPI_Barrier(inter);
    root = odd ? 0 : rank == 0 ? MPI_ROOT : MPI_PROC_NULL;
    prepare(41);
    if (rank == 0) memcpy(in, out, sizeof in);
    MPI_Bcast(in, N, MPI_INT, root, inter), RESULT;
    prepare(42), MPI_Allgather(out, 1, MPI_INT, in, 1, MPI_INT, inter), RESULT;
    prepare(43), MPI_Allreduce(out, in, N, MPI_INT, MPI_SUM, inter), RESULT;
    prepare(44), MPI_Alltoall(out, 1, MPI_INT, in, 1, MPI_INT, inter), RESULT;
    prepare(45), MPI_Gather(out, 1, MPI_INT, in, 1, MPI_INT, root, inter), RESULT;
    prepare(46), MPI_Scatter(out, 1, MPI_INT, in, 1, MPI_INT, root, inter), RESULT;
    prepare(47), MPI_Reduce(out, in, 1, MPI_INT, MPI_SUM, root, inter), RESULT;
    for (int i = 0; i < remote; ++i) counts[i] = 1, places[i] = i;
    prepare(48);
    for (int i = 0; i < size; ++i) counts[i] = 1;
    MPI_Allgatherv(out, 1, MPI_INT, in, counts, places, MPI_INT, inter), RESULT;
    if (rec_mode == REC_PLAIN)
        MPI_Scan(out, in, 1, MPI_INT, MPI_SUM, inter); /* not on these; MPICH 4.0.2 aborts in Scan_init */
    MPI_Comm_free(&inter);
    MPI_Comm_free(&half);
}

/* Several at a time, waited for in another order. */
void case_nonblocking(void) {
    MPI_Request q[6];
    int a = rank + 1, b = 0, c = rank == 0 ? 77 : 0, d[MOST] = {0}, e = 0, f[MOST] = {0}, flag = 0;
    for (int i = 0; i < size; ++i) f[i] = 10 * rank + i;
    MPI_Iallreduce(&a, &b, 1, MPI_INT, MPI_SUM, WORLD, &q[0]);
    MPI_Ibcast(&c, 1, MPI_INT, 0, WORLD, &q[1]);
    MPI_Iallgather(&a, 1, MPI_INT, d, 1, MPI_INT, WORLD, &q[2]);
    MPI_Ibarrier(WORLD, &q[3]);
    MPI_Iscan(&a, &e, 1, MPI_INT, MPI_SUM, WORLD, &q[4]);
    MPI_Ialltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, f, 1, MPI_INT, WORLD, &q[5]);
    UNTIL(flag, MPI_Test(&q[5], &flag, MPI_STATUS_IGNORE));
    MPI_Wait(&q[3], MPI_STATUS_IGNORE);
    PMPI_Waitall(6, q, MPI_STATUSES_IGNORE);
    SHOW1(b), SHOW1(c), rec_show("d", d, size, 4), SHOW1(e), rec_show("f", f, size, 4);
    MPI_Ibarrier(WORLD, &q[0]);
    MPI_Cancel(&q[0]); /* not for collectives */
    PMPI_Wait(&q[0], MPI_STATUS_IGNORE);
}

/* Made once, started thrice, other data each time. */
void case_persistent_collectives(void) {
    MPI_Request q[3] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    int a = 0, b = 0, c = 0, d[MOST] = {0};
    if (MPI_Allreduce_init(&a, &b, 1, MPI_INT, MPI_SUM, WORLD, MPI_INFO_NULL, &q[0]) != MPI_SUCCESS) return;
    MPI_Bcast_init(&c, 1, MPI_INT, 0, WORLD, MPI_INFO_NULL, &q[1]);
    MPI_Gather_init(&a, 1, MPI_INT, d, 1, MPI_INT, 0, WORLD, MPI_INFO_NULL, &q[2]);
    for (int round = 0; round < 3; ++round) {
        a = rank + 10 * round, c = rank == 0 ? round : -1;
        if (round == 0) {
            PMPI_Startall(3, q);
            PMPI_Waitall(3, q, MPI_STATUSES_IGNORE);
        } else {
            for (int i = 0; i < 3; ++i) PMPI_Start(&q[i]), PMPI_Wait(&q[i], MPI_STATUS_IGNORE);
        }
        SHOW1(b), SHOW1(c), rec_show("d", d, size, 4);
    }
    for (int i = 0; i < 3; ++i) MPI_Request_free(&q[i]);
}

static void among(MPI_Comm comm, int sources, int targets) {
    int bytes[MOST];
    MPI_Aint far[MOST];
    for (int i = 0; i < MOST; ++i) bytes[i] = 4 * N * i, far[i] = 4 * N * i;
    (void)bytes;
    prepare(51), MPI_Neighbor_allgather(out, 2, MPI_INT, in, 2, MPI_INT, comm), RESULT;
    prepare(52), MPI_Neighbor_alltoall(out, 1, MPI_INT, in, 1, MPI_INT, comm), RESULT;
    prepare(53);
    for (int i = 0; i < sources; ++i) counts[i] = 2, places[i] = 2 * i;
    MPI_Neighbor_allgatherv(out, 2, MPI_INT, in, counts, places, MPI_INT, comm), RESULT;
    prepare(54);
    int sends[MOST], receives[MOST];
    for (int i = 0; i < MOST; ++i) sends[i] = receives[i] = 1, places[i] = i, types[i] = MPI_INT;
    MPI_Neighbor_alltoallv(out, sends, places, MPI_INT, in, receives, places, MPI_INT, comm), RESULT;
    prepare(55);
    for (int i = 0; i < MOST; ++i) types[i] = MPI_INT, far[i] = 4 * i;
    MPI_Neighbor_alltoallw(out, sends, far, types, in, receives, far, types, comm), RESULT;
    (void)targets;
}

void case_neighbours(void) {
    MPI_Comm cart, graph, adjacent;
    int dims[1] = {size}, periods[1] = {0}, index[MOST], edges[MOST];
    MPI_Cart_create(WORLD, 1, dims, periods, 0, &cart);
    among(cart, 2, 2);
    MPI_Comm_free(&cart);
    for (int i = 0; i < size; ++i)
        index[i] = i + 1, edges[i] = (i % 2 == 0 ? (i + 1 < size ? i + 1 : i) : i - 1);
    MPI_Graph_create(WORLD, size, index, edges, 0, &graph);
    among(graph, 1, 1);
    MPI_Comm_free(&graph);
    int sources[2] = {left, rank}, targets[2] = {right, rank}, weights[2] = {3, 4};
    MPI_Dist_graph_create_adjacent(WORLD, 2, sources, weights, 2, targets, weights, MPI_INFO_NULL, 0,
                                   &adjacent);
    among(adjacent, 2, 2);
    MPI_Comm_free(&adjacent);
    MPI_Neighbor_allgather(out, 1, MPI_INT, in, 1, MPI_INT, WORLD); /* no topology */
}
