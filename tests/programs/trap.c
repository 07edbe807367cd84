/* Known traps of transparent checkpointing, each a case of its own: `trap CASE`. Every case sets something
 * up, holds (the test checkpoints, kills and restarts there), then uses it and checks all it can see. */
#include <fcntl.h>
#include <stddef.h>
#include <sys/mman.h>

#include "held.h"
#include "synchronous.h"

enum { TAG = 7, MANY_OPS = 200 };
static int rank, size, right, left;

static MPI_Comm any_comm(int dup) {
    MPI_Comm comm = MPI_COMM_WORLD;
    if (dup) MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    return comm;
}

/* A message that is on its way at the checkpoint. */
static void send_ring(MPI_Comm comm, MPI_Request* request) {
    static int data[2];
    data[0] = 1000 + rank, data[1] = 2000 + rank;
    MPI_Isend(data, 2, MPI_INT, right, TAG, comm, request);
}

static void drained_status_ignore(void) {
    MPI_Request request;
    int in[2] = {0, 0};
    send_ring(MPI_COMM_WORLD, &request);
    hold();
    MPI_Recv(in, 2, MPI_INT, left, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(in[0] == 1000 + left && in[1] == 2000 + left);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    hash_bytes(in, sizeof in);
}

static void drained_probed(void) {
    MPI_Request request;
    MPI_Status status;
    int in[4] = {0, 0, 5, 6}, count, flag = 0;
    send_ring(MPI_COMM_WORLD, &request);
    hold();
    while (!flag) MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &status);
    MPI_Get_count(&status, MPI_INT, &count);
    CHECK(count == 2 && status.MPI_SOURCE == left && status.MPI_TAG == TAG);
    MPI_Get_elements(&status, MPI_INT, &count);
    CHECK(count == 2);
    memset(&status, 0, sizeof status);
    MPI_Probe(left, TAG, MPI_COMM_WORLD, &status);
    CHECK(status.MPI_SOURCE == left && status.MPI_TAG == TAG);
    MPI_Recv(in, 4, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, MPI_INT, &count);
    CHECK(count == 2 && in[0] == 1000 + left && in[2] == 5);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    hash_bytes(in, sizeof in);
}

static void drained_strided(void) {
    MPI_Datatype vector, odd;
    MPI_Request request;
    MPI_Status status;
    double out[24], in[24], twice[24];
    int count, lengths[2] = {1, 2}, displacements[2] = {1, 5};
    for (int i = 0; i < 24; ++i) out[i] = rank * 100 + i, in[i] = twice[i] = -1;
    MPI_Type_vector(6, 2, 4, MPI_DOUBLE, &vector);
    MPI_Type_commit(&vector);
    MPI_Isend(out, 1, vector, right, TAG, MPI_COMM_WORLD, &request);
    hold();
    MPI_Recv(in, 1, vector, left, TAG, MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, vector, &count);
    CHECK(count == 1);
    for (int i = 0; i < 24; ++i) CHECK(in[i] == (i % 4 < 2 ? left * 100 + i : -1));
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    /* a type made after the restart from types made before */
    MPI_Type_indexed(2, lengths, displacements, MPI_DOUBLE, &odd);
    MPI_Type_commit(&odd);
    MPI_Sendrecv(out, 1, odd, right, 1, twice, 1, odd, left, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(twice[1] == left * 100 + 1 && twice[6] == left * 100 + 6 && twice[0] == -1);
    MPI_Type_free(&odd);
    MPI_Type_free(&vector);
    hash_bytes(in, sizeof in);
}

static void drained_dup(void) {
    MPI_Comm comm = any_comm(1);
    MPI_Request request;
    int in[2], flag;
    send_ring(comm, &request);
    hold();
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    CHECK(!flag);
    MPI_Recv(in, 2, MPI_INT, left, TAG, comm, MPI_STATUS_IGNORE);
    CHECK(in[0] == 1000 + left);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Comm_free(&comm);
    hash_bytes(in, sizeof in);
}

/* Order of messages of one sender: those drained come before those sent after. */
static void drained_order(void) {
    MPI_Request requests[40];
    int out[40], in[40];
    for (int i = 0; i < 40; ++i) out[i] = 100 * rank + i;
    for (int i = 0; i < 20; ++i)
        MPI_Isend(&out[i], 1, MPI_INT, right, TAG + i % 2, MPI_COMM_WORLD, &requests[i]);
    hold();
    for (int i = 20; i < 40; ++i)
        MPI_Isend(&out[i], 1, MPI_INT, right, TAG + i % 2, MPI_COMM_WORLD, &requests[i]);
    for (int i = 0; i < 10; ++i)
        MPI_Recv(&in[i], 1, MPI_INT, left, TAG + 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 10; i < 40; ++i) {
        MPI_Status status;
        MPI_Recv(&in[i], 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
        CHECK(status.MPI_SOURCE == left);
    }
    for (int i = 0; i < 10; ++i) CHECK(in[i] == 100 * left + 2 * i + 1);
    for (int i = 0; i < 10; ++i) CHECK(in[10 + i] == 100 * left + 2 * i);
    for (int i = 20; i < 40; ++i) CHECK(in[i] == 100 * left + i);
    MPI_Waitall(40, requests, MPI_STATUSES_IGNORE);
    hash_bytes(in, sizeof in);
}

static void posted_receives(void) {
    MPI_Request requests[3], sends[3];
    MPI_Status statuses[3];
    int in[3] = {-1, -1, -1}, out[3], done, index;
    MPI_Irecv(&in[0], 1, MPI_INT, left, TAG, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(&in[1], 1, MPI_INT, MPI_ANY_SOURCE, TAG, MPI_COMM_WORLD, &requests[1]);
    MPI_Irecv(&in[2], 1, MPI_INT, left, MPI_ANY_TAG, MPI_COMM_WORLD, &requests[2]);
    hold();
    MPI_Testall(3, requests, &done, statuses);
    CHECK(!done);
    MPI_Barrier(MPI_COMM_WORLD); /* nobody sends before all have looked */
    for (int i = 0; i < 3; ++i) out[i] = 10 * rank + i;
    for (int i = 0; i < 3; ++i) MPI_Isend(&out[i], 1, MPI_INT, right, TAG, MPI_COMM_WORLD, &sends[i]);
    MPI_Waitany(1, requests, &index, &statuses[0]);
    CHECK(index == 0);
    MPI_Waitall(2, requests + 1, statuses + 1);
    for (int i = 0; i < 3; ++i) CHECK(in[i] == 10 * left + i);
    CHECK(statuses[1].MPI_SOURCE == left && statuses[2].MPI_TAG == TAG);
    MPI_Waitall(3, sends, MPI_STATUSES_IGNORE);
    hash_bytes(in, sizeof in);
}

static void matched_message(void) {
    MPI_Request request, receive;
    MPI_Message message;
    MPI_Status status;
    int in[2], count;
    send_ring(MPI_COMM_WORLD, &request);
    MPI_Mprobe(left, TAG, MPI_COMM_WORLD, &message, &status);
    hold();
    MPI_Get_count(&status, MPI_INT, &count);
    CHECK(count == 2);
    MPI_Imrecv(in, 2, MPI_INT, &message, &receive);
    CHECK(message == MPI_MESSAGE_NULL);
    MPI_Wait(&receive, &status);
    CHECK(in[0] == 1000 + left && status.MPI_SOURCE == left);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    hash_bytes(in, sizeof in);
}

static void persistent(void) {
    MPI_Request requests[2];
    int out = 0, in = 0;
    MPI_Send_init(&out, 1, MPI_INT, right, TAG, MPI_COMM_WORLD, &requests[0]);
    MPI_Recv_init(&in, 1, MPI_INT, left, TAG, MPI_COMM_WORLD, &requests[1]);
    out = rank + 1;
    MPI_Startall(2, requests);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    CHECK(in == left + 1);
    out = rank + 2;
    MPI_Start(&requests[1]); /* one active, one not, across the checkpoint */
    hold();
    MPI_Start(&requests[0]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    CHECK(in == left + 2);
    for (int i = 0; i < 3; ++i) {
        out = 50 + i + rank;
        MPI_Startall(2, requests);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        CHECK(in == 50 + i + left);
    }
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
    hash_bytes(&in, sizeof in);
}

/* Rank 0 waits for a message that rank 1 sends only after a collective with others: see collective-clock.md.
 */
static void needed_before_collective(void) {
    MPI_Comm a, b;
    int value = 0, sum;
    CHECK(size >= 4);
    MPI_Comm_split(MPI_COMM_WORLD, rank == 0 || rank == 3 ? 1 : MPI_UNDEFINED, rank, &b);
    MPI_Comm_split(MPI_COMM_WORLD, rank == 1 || rank == 2 ? 1 : MPI_UNDEFINED, rank, &a);
    hold_here(rank == 0);
    for (int i = 0; i < 400; ++i) {
        if (rank == 0) {
            MPI_Allreduce(&i, &sum, 1, MPI_INT, MPI_SUM, b);
            MPI_Send(&sum, 1, MPI_INT, 1, TAG, MPI_COMM_WORLD);
        } else if (rank == 1) {
            MPI_Recv(&value, 1, MPI_INT, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            CHECK(value == 2 * i);
            MPI_Allreduce(&i, &sum, 1, MPI_INT, MPI_SUM, a);
        } else if (rank == 2) {
            MPI_Allreduce(&i, &sum, 1, MPI_INT, MPI_SUM, a);
        } else if (rank == 3) {
            usleep(1000);
            MPI_Allreduce(&i, &sum, 1, MPI_INT, MPI_SUM, b);
        }
        if (rank < 4) CHECK(sum == 2 * i);
    }
    hash_bytes(&value, sizeof value);
}

/* The dynamic sparse data exchange of PETSc and others: who knows that all its synchronous sends are received
 * enters a barrier, and when that is over nothing more can come. The checkpoint takes the messages before
 * rank 0 has looked for any. */
static void sparse_exchange(void) {
    MPI_Request sends[3], barrier = MPI_REQUEST_NULL;
    int value[3], n = 0, got = 0, sum = 0, entered = 0, over = 0;
    if (rank != 0)
        for (; n < 3; ++n) {
            value[n] = rank * 10 + n;
            MPI_Issend(&value[n], 1, MPI_INT, 0, TAG, MPI_COMM_WORLD, &sends[n]);
        }
    hold();
    while (!over) {
        int flag;
        MPI_Status status;
        if (rank == 0)
            usleep(20000); /* the others are in the barrier long before it has looked three times */
        MPI_Iprobe(MPI_ANY_SOURCE, TAG, MPI_COMM_WORLD, &flag, &status);
        if (flag) {
            int in;
            MPI_Recv(&in, 1, MPI_INT, status.MPI_SOURCE, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            ++got;
            sum += in;
        }
        if (entered) {
            MPI_Test(&barrier, &over, MPI_STATUS_IGNORE);
        } else {
            MPI_Testall(n, sends, &flag, MPI_STATUSES_IGNORE);
            if (flag) MPI_Ibarrier(MPI_COMM_WORLD, &barrier);
            entered = flag;
        }
    }
    CHECK(got == (rank == 0 ? 3 * (size - 1) : 0));
    hash_bytes(&sum, sizeof sum);
}

/* Rank 0's part of a non-blocking collective is started, the others' not: nobody was told it is complete. */
static void pending_collectives(void) {
    MPI_Request requests[3];
    int data = rank == 0 ? 4711 : 0, in = rank + 1, out = -1, flag;
    if (rank == 0) {
        MPI_Ibcast(&data, 1, MPI_INT, 0, MPI_COMM_WORLD, &requests[0]);
        MPI_Ibarrier(MPI_COMM_WORLD, &requests[1]);
        MPI_Iallreduce(&in, &out, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[2]);
        MPI_Test(&requests[1], &flag, MPI_STATUS_IGNORE);
        CHECK(!flag);
        usleep(100000);
    }
    hold_here(rank == 0);
    if (rank != 0) {
        MPI_Ibcast(&data, 1, MPI_INT, 0, MPI_COMM_WORLD, &requests[0]);
        MPI_Ibarrier(MPI_COMM_WORLD, &requests[1]);
        MPI_Iallreduce(&in, &out, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[2]);
    }
    MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
    CHECK(data == 4711 && out == size * (size + 1) / 2);
    hash_bytes(&out, sizeof out);
}

/* All have started it, some have been told. */
static void half_told_collective(void) {
    MPI_Request request;
    int in = rank + 1, out = -1, sum = -1;
    MPI_Iallreduce(&in, &out, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
    if (rank == 0) {
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        for (int i = 1; i < size; ++i) MPI_Send(&out, 1, MPI_INT, i, TAG, MPI_COMM_WORLD);
    } else {
        /* progress without being told anything, until rank 0 has been */
        for (int flag = 0; !flag; usleep(500)) MPI_Iprobe(0, TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    }
    hold_here(rank == 0);
    if (rank != 0) {
        MPI_Recv(&sum, 1, MPI_INT, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        CHECK(sum == out);
    }
    CHECK(out == size * (size + 1) / 2);
    MPI_Allreduce(&out, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(sum == size * out);
    hash_bytes(&sum, sizeof sum);
}

static void dup_of_world(void) {
    MPI_Comm comms[8];
    int sum;
    for (int i = 0; i < 5; ++i) MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < 4; ++i) MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
    for (int i = 0; i < 3; ++i) MPI_Allreduce(&i, &sum, 1, MPI_INT, MPI_SUM, comms[1]);
    MPI_Comm_free(&comms[0]);
    hold();
    for (int i = 4; i < 8; ++i) MPI_Comm_dup(comms[i - 3], &comms[i]);
    for (int i = 1; i < 8; ++i) {
        MPI_Allreduce(&i, &sum, 1, MPI_INT, MPI_SUM, comms[i]);
        CHECK(sum == i * size);
        MPI_Comm_free(&comms[i]);
    }
    hash_bytes(&sum, sizeof sum);
}

static void topology(void) {
    MPI_Comm cart, sub, graph, adjacent;
    int dims[2] = {size / 2, 2}, periods[2] = {1, 0}, coords[2], got_dims[2], got_periods[2], source, dest,
        keep[2] = {0, 1};
    int kind, n, in[2], sum, index[64], edges[64], degree, indegree, outdegree, weighted;
    if (size < 2 || size % 2) dims[0] = size, dims[1] = 1;
    MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &cart);
    MPI_Cart_sub(cart, keep, &sub);
    for (int i = 0; i < size; ++i) index[i] = i + 1, edges[i] = (i + 1) % size;
    MPI_Graph_create(MPI_COMM_WORLD, size, index, edges, 0, &graph);
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &left, MPI_UNWEIGHTED, 1, &right, MPI_UNWEIGHTED,
                                   MPI_INFO_NULL, 0, &adjacent);
    hold();
    MPI_Topo_test(cart, &kind);
    CHECK(kind == MPI_CART);
    MPI_Topo_test(graph, &kind);
    CHECK(kind == MPI_GRAPH);
    MPI_Topo_test(adjacent, &kind);
    CHECK(kind == MPI_DIST_GRAPH);
    MPI_Cart_get(cart, 2, got_dims, got_periods, coords);
    CHECK(got_dims[0] == dims[0] && got_dims[1] == dims[1] && got_periods[0] && !got_periods[1]);
    MPI_Cart_rank(cart, coords, &n);
    CHECK(n == rank);
    MPI_Cart_shift(cart, 0, 1, &source, &dest);
    MPI_Sendrecv(&rank, 1, MPI_INT, dest, 1, &n, 1, MPI_INT, source, 1, cart, MPI_STATUS_IGNORE);
    CHECK(n == source);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, sub);
    MPI_Cartdim_get(sub, &n);
    CHECK(n == 1);
    MPI_Graph_neighbors_count(graph, rank, &degree);
    CHECK(degree == 1);
    MPI_Graph_neighbors(graph, rank, 1, &n);
    CHECK(n == right);
    MPI_Dist_graph_neighbors_count(adjacent, &indegree, &outdegree, &weighted);
    CHECK(indegree == 1 && outdegree == 1 && !weighted);
    MPI_Neighbor_allgather(&rank, 1, MPI_INT, in, 1, MPI_INT, adjacent);
    CHECK(in[0] == left);
    MPI_Comm_free(&adjacent);
    MPI_Comm_free(&graph);
    MPI_Comm_free(&sub);
    MPI_Comm_free(&cart);
    hash_bytes(&sum, sizeof sum);
}

static int copies, deletes;
static int copy_attribute(MPI_Comm comm, int keyval, void* extra, void* in, void* out, int* flag) {
    (void)comm, (void)keyval;
    ++copies;
    *(void**)out = (char*)in + (long)extra;
    *flag = 1;
    return MPI_SUCCESS;
}
static int delete_attribute(MPI_Comm comm, int keyval, void* value, void* extra) {
    (void)comm, (void)keyval, (void)value, (void)extra;
    ++deletes;
    return MPI_SUCCESS;
}
static int handled, handled_class;
static void handler(MPI_Comm* comm, int* code, ...) {
    (void)comm;
    ++handled;
    MPI_Error_class(*code, &handled_class);
}

/* A grid that rank 0 has asked for is the grid of everybody later, on whatever library; so is one that all
 * know. */
static void grids(void) {
    enum { ASKED = 4 };
    static const struct {
        int nodes, dims[3], count;
    } questions[ASKED] = {{72, {0, 0, 0}, 2}, {72, {0, 6, 0}, 3}, {500, {0, 0, 0}, 2}, {96, {0, 0, 0}, 2}};
    int first[ASKED][3], again[3];
    memset(first, 0, sizeof first);
    for (int i = 0; i < ASKED; ++i)
        if (rank == 0 || i == 3) {
            memcpy(first[i], questions[i].dims, sizeof first[i]);
            MPI_Dims_create(questions[i].nodes, questions[i].count, first[i]);
            hash_bytes(first[i], sizeof first[i]);
        }
    MPI_Bcast(first, 3 * ASKED, MPI_INT, 0, MPI_COMM_WORLD);
    hold();
    for (int turn = 0; turn < 2; ++turn)
        for (int i = 0; i < ASKED; ++i) {
            memcpy(again, questions[i].dims, sizeof again);
            MPI_Dims_create(questions[i].nodes, questions[i].count, again);
            CHECK(memcmp(again, first[i], sizeof again) == 0);
        }
    again[0] = again[1] = 5; /* fixed ones that do not fit */
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    CHECK(MPI_Dims_create(72, 2, again) != MPI_SUCCESS);
}

static void properties(void) {
    MPI_Comm comm = any_comm(1), twin;
    MPI_Errhandler errhandler;
    MPI_Info info, got;
    int keyval, flag, length, n = 0, code;
    char name[MPI_MAX_OBJECT_NAME], value[64];
    void* attribute;
    MPI_Comm_set_name(comm, "a name that stays");
    MPI_Comm_create_keyval(copy_attribute, delete_attribute, &keyval, (void*)8);
    MPI_Comm_set_attr(comm, keyval, (void*)1000);
    MPI_Comm_create_errhandler(handler, &errhandler);
    MPI_Comm_set_errhandler(comm, errhandler);
    MPI_Errhandler_free(&errhandler);
    MPI_Info_create(&info);
    MPI_Info_set(info, "first", "1");
    MPI_Info_set(info, "second", "two words");
    hold();
    MPI_Comm_get_name(comm, name, &length);
    CHECK(strcmp(name, "a name that stays") == 0 && length == (int)strlen(name));
    MPI_Comm_get_attr(comm, keyval, &attribute, &flag);
    CHECK(flag && attribute == (void*)1000);
    MPI_Comm_dup(comm, &twin);
    CHECK(copies == 1);
    MPI_Comm_get_attr(twin, keyval, &attribute, &flag);
    CHECK(flag && attribute == (void*)1008);
    code = MPI_Send(&n, 1, MPI_INT, size + 5, 0, comm);
    CHECK(code != MPI_SUCCESS && handled == 1 && handled_class == MPI_ERR_RANK);
    MPI_Comm_free(&twin);
    CHECK(deletes == 1);
    MPI_Comm_delete_attr(comm, keyval);
    CHECK(deletes == 2);
    MPI_Comm_free_keyval(&keyval);
    MPI_Info_get_nkeys(info, &n);
    CHECK(n == 2);
    MPI_Info_get(info, "second", 63, value, &flag);
    CHECK(flag && strcmp(value, "two words") == 0);
    MPI_Info_dup(info, &got);
    MPI_Info_get_nthkey(got, 0, name);
    CHECK(strcmp(name, "first") == 0);
    MPI_Info_free(&got);
    MPI_Info_free(&info);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &attribute, &flag);
    CHECK(flag && *(int*)attribute >= 32767);
    MPI_Comm_free(&comm);
    hash_bytes(name, 5);
}

static void added_errors(void) {
    MPI_Comm comm = any_comm(1);
    MPI_Errhandler errhandler;
    int class, code, other, got, flag, length, *last;
    char text[MPI_MAX_ERROR_STRING];
    MPI_Add_error_class(&class);
    MPI_Add_error_code(class, &code);
    MPI_Add_error_code(MPI_ERR_IO, &other);
    MPI_Add_error_string(class, "a class of the program's");
    MPI_Add_error_string(code, "a code of the program's");
    MPI_Comm_create_errhandler(handler, &errhandler);
    MPI_Comm_set_errhandler(comm, errhandler);
    MPI_Errhandler_free(&errhandler);
    hold();
    MPI_Error_class(code, &got);
    CHECK(got == class);
    MPI_Error_class(other, &got);
    CHECK(got == MPI_ERR_IO);
    MPI_Error_string(class, text, &length);
    CHECK(strcmp(text, "a class of the program's") == 0 && length == (int)strlen(text));
    MPI_Error_string(code, text, &length);
    CHECK(strcmp(text, "a code of the program's") == 0);
    hash_bytes(text, (size_t)length);
    MPI_Comm_call_errhandler(comm, code);
    CHECK(handled == 1 && handled_class == class);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, &last, &flag);
    CHECK(flag && *last >= class); /* MPICH counts classes only */
    MPI_Add_error_class(&got);     /* none of the old ones again */
    CHECK(got != class && got != code && got != other);
    MPI_Comm_free(&comm);
}

/* Of a profiling library, when one is preloaded. */
extern int profiled_sends(void) __attribute__((weak));

static void profiled(void) {
    int sends = 0, in, right = (rank + 1) % size, left = (rank + size - 1) % size;
    for (int i = 0; i < 10; ++i) {
        MPI_Request request;
        MPI_Irecv(&in, 1, MPI_INT, left, i, MPI_COMM_WORLD, &request);
        MPI_Send(&i, 1, MPI_INT, right, i, MPI_COMM_WORLD);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        CHECK(in == i);
        if (i == 4) hold();
    }
    if (profiled_sends) {
        sends = profiled_sends();
        CHECK(sends == 10);
    }
    hash_bytes(&sends, sizeof sends);
}

/* Many short runs of touched pages in one mapping: more than the kernel tells of at once. */
static void sparse_memory(void) {
    enum { RUNS = 5000, APART = 2, PAGE = 4096 };
    size_t bytes = (size_t)RUNS * APART * PAGE;
    char* memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED);
    CHECK(madvise(memory, bytes, MADV_NOHUGEPAGE) == 0);
    for (int run = 0; run < RUNS; ++run) {
        int value = run * 31 + rank;
        memcpy(memory + (size_t)run * APART * PAGE, &value, sizeof value);
    }
    hold();
    for (int run = 0; run < RUNS; ++run) {
        int value;
        memcpy(&value, memory + (size_t)run * APART * PAGE, sizeof value);
        CHECK(value == run * 31 + rank);
        memcpy(&value, memory + ((size_t)run * APART + 1) * PAGE, sizeof value);
        CHECK(value == 0);
    }
    hash_bytes(memory, bytes / 64);
    munmap(memory, bytes);
}

static void combine(void* in, void* inout, int* length, MPI_Datatype* type) {
    MPI_Aint lower, extent;
    MPI_Type_get_extent(*type, &lower, &extent);
    for (int i = 0; i < *length; ++i) {
        int *a = (int*)((char*)in + i * extent), *b = (int*)((char*)inout + i * extent);
        b[0] = a[0] > b[0] ? a[0] : b[0];
        b[1] += a[1];
    }
}

static void user_ops(void) {
    static MPI_Op ops[MANY_OPS];
    MPI_Datatype pair;
    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Type_commit(&pair);
    for (int i = 0; i < MANY_OPS; ++i) MPI_Op_create(combine, 1, &ops[i]);
    for (int i = 0; i < MANY_OPS; i += 3) MPI_Op_free(&ops[i]);
    hold();
    for (int i = 1; i < MANY_OPS; i += 3) {
        int in[4] = {rank, i, 7 - rank, rank}, out[4];
        MPI_Allreduce(in, out, 2, pair, ops[i], MPI_COMM_WORLD);
        CHECK(out[0] == size - 1 && out[1] == i * size && out[2] == 7 && out[3] == size * (size - 1) / 2);
    }
    for (int i = 0; i < MANY_OPS; ++i)
        if (i % 3) MPI_Op_free(&ops[i]);
    MPI_Type_free(&pair);
}

struct particle {
    char kind;
    double x[3];
    int id[2];
};

static void derived_types(void) {
    MPI_Datatype element, resized, grid, array, freed, nested;
    MPI_Aint places[3] = {offsetof(struct particle, kind), offsetof(struct particle, x),
                          offsetof(struct particle, id)};
    MPI_Datatype kinds[3] = {MPI_CHAR, MPI_DOUBLE, MPI_INT};
    int lengths[3] = {1, 3, 2}, sizes[2] = {6, 8}, subsizes[2] = {2, 3}, starts[2] = {1, 4}, bytes, ni, na,
        nt, combiner;
    struct particle out[3], in[3];
    int block[48], got[48];
    MPI_Aint lower, extent;
    MPI_Type_create_struct(3, lengths, places, kinds, &element);
    MPI_Type_create_resized(element, 0, sizeof(struct particle), &resized);
    MPI_Type_commit(&resized);
    MPI_Type_create_subarray(2, sizes, subsizes, starts, MPI_ORDER_C, MPI_INT, &grid);
    MPI_Type_commit(&grid);
    MPI_Type_contiguous(2, resized, &freed);
    MPI_Type_vector(2, 1, 3, freed, &nested);
    MPI_Type_commit(&nested);
    MPI_Type_free(&freed); /* still part of `nested` */
    MPI_Type_free(&element);
    MPI_Type_dup(grid, &array);
    hold();
    memset(out, 0, sizeof out);
    memset(in, 0, sizeof in);
    for (int i = 0; i < 3; ++i)
        out[i] = (struct particle){(char)('a' + i + rank), {i, rank, i * rank}, {rank * 10 + i, -i}};
    MPI_Sendrecv(out, 3, resized, right, 1, in, 3, resized, left, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < 3; ++i)
        CHECK(in[i].kind == 'a' + i + left && in[i].x[1] == left && in[i].id[0] == left * 10 + i);
    for (int i = 0; i < 48; ++i) block[i] = 100 * rank + i, got[i] = -1;
    MPI_Sendrecv(block, 1, grid, right, 2, got, 1, array, left, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int r = 0; r < 6; ++r)
        for (int c = 0; c < 8; ++c)
            CHECK(got[r * 8 + c] == (r >= 1 && r < 3 && c >= 4 && c < 7 ? 100 * left + r * 8 + c : -1));
    MPI_Type_get_extent(resized, &lower, &extent);
    CHECK(lower == 0 && extent == sizeof(struct particle));
    MPI_Type_size(nested, &bytes);
    CHECK(bytes == 4 * (1 + 24 + 8));
    MPI_Type_get_envelope(grid, &ni, &na, &nt, &combiner);
    CHECK(combiner == MPI_COMBINER_SUBARRAY && nt == 1);
    MPI_Type_free(&nested);
    MPI_Type_free(&array);
    MPI_Type_free(&grid);
    MPI_Type_free(&resized);
    hash_bytes(in[0].x, sizeof in[0].x);
}

static void plain_sum(void* in, void* inout, int* n, MPI_Datatype* type) {
    (void)type;
    for (int i = 0; i < *n; ++i) ((int*)inout)[i] += ((int*)in)[i];
}

/* Communicator, type and operation are freed while requests are open on them; persistent ones start after the
 * hold. */
static void freed_in_use(void) {
    MPI_Comm comm;
    MPI_Datatype pairs;
    MPI_Op op;
    MPI_Request q[3], later[2];
    int out[4] = {10 + rank, -1, 20 + rank, -1}, in[4] = {0, 7, 0, 7}, again[4] = {0}, mine = rank + 1,
        sum = 0, all = 0;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Type_vector(2, 1, 2, MPI_INT, &pairs);
    MPI_Type_commit(&pairs);
    MPI_Op_create(plain_sum, 1, &op);
    MPI_Irecv(in, 1, pairs, left, TAG, comm, &q[0]);
    MPI_Isend(out, 1, pairs, right, TAG, comm, &q[1]);
    MPI_Iallreduce(&mine, &sum, 1, MPI_INT, op, comm, &q[2]);
    MPI_Recv_init(again, 1, pairs, right, TAG, comm, &later[0]);
    MPI_Send_init(out, 1, pairs, left, TAG, comm, &later[1]);
    MPI_Op_free(&op);
    MPI_Type_free(&pairs);
    MPI_Comm_free(&comm);
    hold();
    MPI_Waitall(3, q, MPI_STATUSES_IGNORE);
    CHECK(in[0] == 10 + left && in[1] == 7 && in[2] == 20 + left && in[3] == 7);
    for (int i = 0; i < size; ++i) all += i + 1;
    CHECK(sum == all);
    for (int round = 0; round < 2; ++round) {
        MPI_Startall(2, later);
        MPI_Waitall(2, later, MPI_STATUSES_IGNORE);
        CHECK(again[0] == 10 + right && again[1] == 0 && again[2] == 20 + right);
    }
    MPI_Request_free(&later[0]), MPI_Request_free(&later[1]);
    hash_bytes(in, sizeof in);
}

static void groups(void) {
    MPI_Group world, odd, rest;
    MPI_Comm inter, merged, part, created;
    int n, ranks[64], translated[64], sum, remote, range[1][3] = {{0, size - 1, 2}};
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_range_incl(world, 1, range, &odd);
    MPI_Group_difference(world, odd, &rest);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &part);
    MPI_Intercomm_create(part, 0, MPI_COMM_WORLD, rank % 2 ? 0 : 1, 5, &inter);
    MPI_Intercomm_merge(inter, rank % 2, &merged);
    MPI_Comm_create(MPI_COMM_WORLD, rest, &created);
    hold();
    MPI_Group_size(rest, &n);
    CHECK(n == size / 2);
    for (int i = 0; i < n; ++i) ranks[i] = i;
    MPI_Group_translate_ranks(rest, n, ranks, world, translated);
    for (int i = 0; i < n; ++i) CHECK(translated[i] == 2 * i + 1);
    MPI_Comm_remote_size(inter, &remote);
    CHECK(remote == (rank % 2 ? (size + 1) / 2 : size / 2));
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, inter);
    n = 0;
    for (int i = rank % 2 ? 0 : 1; i < size; i += 2) n += i;
    CHECK(sum == n);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, merged);
    CHECK(sum == size * (size - 1) / 2);
    CHECK((created == MPI_COMM_NULL) == (rank % 2 == 0));
    if (created != MPI_COMM_NULL) {
        MPI_Barrier(created);
        MPI_Comm_free(&created);
    }
    MPI_Comm_free(&merged);
    MPI_Comm_free(&inter);
    MPI_Comm_free(&part);
    MPI_Group_free(&rest);
    MPI_Group_free(&odd);
    MPI_Group_free(&world);
    hash_bytes(&sum, sizeof sum);
}

static void buffered(void) {
    static char space[4096];
    void* address;
    int out = rank + 5, in = 0, bytes;
    MPI_Buffer_attach(space, sizeof space);
    MPI_Bsend(&out, 1, MPI_INT, right, TAG, MPI_COMM_WORLD);
    hold();
    out = 0;
    MPI_Bsend(&out, 1, MPI_INT, right, TAG + 1, MPI_COMM_WORLD);
    MPI_Recv(&in, 1, MPI_INT, left, TAG + 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(in == 0);
    MPI_Recv(&in, 1, MPI_INT, left, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(in == left + 5);
    MPI_Buffer_detach(&address, &bytes);
    CHECK(address == space && bytes == sizeof space);
    hash_bytes(&in, sizeof in);
}

/* A large message whose sender is inside MPI_Send while the receiver has not come to its receive. */
static void large_captive_send(void) {
    enum { COUNT = 1 << 20 };
    double* data = malloc(COUNT * sizeof *data);
    hold_here(0);
    if (rank % 2 == 0 && rank + 1 < size) {
        for (int i = 0; i < COUNT; ++i) data[i] = i * 0.5 + rank;
        if (rank == 0) {
            printf("READY\n");
            fflush(stdout);
        }
        MPI_Send(data, COUNT, MPI_DOUBLE, rank + 1, TAG, MPI_COMM_WORLD);
    } else if (rank % 2) {
        const char* path = getenv("HOLD_FILE_LATE");
        while (path && access(path, F_OK) != 0) usleep(5000);
        MPI_Recv(data, COUNT, MPI_DOUBLE, rank - 1, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int i = 0; i < COUNT; ++i) CHECK(data[i] == i * 0.5 + rank - 1);
    }
    hash_bytes(data, 100 * sizeof *data);
    free(data);
}

/* Rank 0 sits in MPI_Recv, the others outside MPI. */
static void blocked_receive(void) {
    int in = 0;
    const char* path = getenv("HOLD_FILE");
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        MPI_Status status;
        if (path) {
            printf("READY\n");
            fflush(stdout);
        }
        for (int i = 1; i < size; ++i) {
            int one;
            MPI_Recv(&one, 1, MPI_INT, MPI_ANY_SOURCE, TAG, MPI_COMM_WORLD, &status);
            CHECK(one == status.MPI_SOURCE * 3);
            in += one;
        }
    } else {
        int mine = rank * 3;
        while (path && access(path, F_OK) != 0) usleep(5000);
        MPI_Send(&mine, 1, MPI_INT, 0, TAG, MPI_COMM_WORLD);
    }
    hash_bytes(&in, sizeof in);
}

/* Rank 0 spins on MPI_Iprobe and MPI_Test, the others are outside MPI. */
static void polling(void) {
    int in = 0, flag = 0;
    const char* path = getenv("HOLD_FILE");
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        MPI_Request request;
        if (path) {
            printf("READY\n");
            fflush(stdout);
        }
        MPI_Irecv(&in, 1, MPI_INT, size - 1, TAG, MPI_COMM_WORLD, &request);
        while (!flag) {
            int other;
            MPI_Iprobe(MPI_ANY_SOURCE, TAG + 1, MPI_COMM_WORLD, &other, MPI_STATUS_IGNORE);
            CHECK(!other);
            MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
        }
        CHECK(in == 99);
    } else {
        int mine = 99;
        while (path && access(path, F_OK) != 0) usleep(5000);
        if (rank == size - 1) MPI_Send(&mine, 1, MPI_INT, 0, TAG, MPI_COMM_WORLD);
    }
    hash_bytes(&in, sizeof in);
}

/* Rank 0 has arrived in MPI_Finalize, the others have not. */
/* A log that every rank keeps open for appending: at the end each line is there once, whatever was written
 * between the checkpoint and the restart. */
static void append_in_turn(int log, const char* when) {
    char line[64];
    for (int turn = 0; turn < size; ++turn) {
        int length = snprintf(line, sizeof line, "%s %d\n", when, rank);
        if (turn == rank) CHECK(write(log, line, (size_t)length) == length);
        MPI_Barrier(MPI_COMM_WORLD);
    }
}
static void appended(void) {
    char text[4096], want[4096];
    size_t length = 0;
    if (rank == 0) unlink("appended.log");
    MPI_Barrier(MPI_COMM_WORLD);
    int log = open("appended.log", O_WRONLY | O_APPEND | O_CREAT, 0600);
    CHECK(log >= 0);
    append_in_turn(log, "before");
    hold();
    append_in_turn(log, "after");
    close(log);
    for (int i = 0; i < 2 * size; ++i)
        length += (size_t)snprintf(want + length, sizeof want - length, "%s %d\n",
                                   i < size ? "before" : "after", i % size);
    int file = open("appended.log", O_RDONLY);
    ssize_t got = read(file, text, sizeof text);
    close(file);
    CHECK(got == (ssize_t)length && memcmp(text, want, length) == 0);
    hash_bytes(text, length);
}

static void in_finalize(void) {
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        printf("in_finalize: right\n");
        if (getenv("HOLD_FILE")) printf("READY\n");
        fflush(stdout);
    } else {
        hold_here(0);
    }
}

/* Half of the ranks have not called MPI_Init yet; the others have a communicator of their own. */
static int rank_before_init(void) {
    const char* text =
        getenv("PMI_RANK") ? getenv("PMI_RANK") : getenv("PMIX_RANK"); /* every Open MPI has the latter */
    return text ? atoi(text) : 0;
}

static void before_init(void) {
    MPI_Group world, evens;
    MPI_Comm comm;
    int range[1][3] = {{0, 0, 2}}, sum = 0;
    range[0][1] = size - 1;
    if (rank % 2 == 0) {
        MPI_Comm_group(MPI_COMM_WORLD, &world);
        MPI_Group_range_incl(world, 1, range, &evens);
        MPI_Comm_create_group(MPI_COMM_WORLD, evens, 5, &comm);
        hold_here(rank == 0);
        MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm);
        CHECK(sum == (size / 2 - 1) * (size / 2));
        MPI_Comm_free(&comm);
        MPI_Group_free(&evens);
        MPI_Group_free(&world);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Two halves, an inter-communicator between them with a message on its way, and what it was merged to. */
static void inter_communicators(void) {
    MPI_Comm half, inter, merged, node;
    MPI_Request request;
    int odd = rank % 2, remote, in = -1, out = 500 + rank, total = 0, peer, flag;
    MPI_Comm_split_type(MPI_COMM_WORLD, odd ? MPI_UNDEFINED : MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    CHECK((node == MPI_COMM_NULL) == odd);
    if (!odd) MPI_Comm_free(&node);
    MPI_Comm_split(MPI_COMM_WORLD, odd, rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, odd ? 0 : 1, 3, &inter);
    MPI_Intercomm_merge(inter, odd, &merged);
    MPI_Comm_rank(half, &peer);
    MPI_Isend(&out, 1, MPI_INT, peer, 4, inter, &request);
    hold();
    MPI_Comm_test_inter(inter, &flag);
    MPI_Comm_remote_size(inter, &remote);
    CHECK(flag && remote == size / 2);
    MPI_Recv(&in, 1, MPI_INT, peer, 4, inter, MPI_STATUS_IGNORE);
    CHECK(in == 500 + (odd ? rank - 1 : rank + 1));
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Allreduce(&rank, &total, 1, MPI_INT, MPI_SUM, inter); /* the other side's sum */
    CHECK(total == size / 2 * (size / 2 - 1) + (odd ? 0 : size / 2));
    MPI_Comm_rank(merged, &peer);
    CHECK(peer == rank / 2 + (odd ? size / 2 : 0));
    MPI_Allreduce(&rank, &total, 1, MPI_INT, MPI_SUM, merged);
    CHECK(total == size * (size - 1) / 2);
    MPI_Comm_free(&merged);
    MPI_Comm_free(&inter);
    MPI_Comm_free(&half);
    hash_bytes(&in, sizeof in);
}

void hash_picked(MPI_Datatype type) {
    int data[64], back[64], count, bytes, pack;
    MPI_Status status;
    for (int i = 0; i < 64; ++i) data[i] = 100 * rank + i, back[i] = -1;
    MPI_Type_size(type, &bytes);
    MPI_Sendrecv(data, 1, type, rank, 2, back, 64, MPI_INT, rank, 2, MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, MPI_BYTE, &count);
    MPI_Pack_size(1, type, MPI_COMM_WORLD, &pack);
    CHECK(count == bytes && pack >= bytes && bytes > 0 && bytes <= (int)sizeof back);
    hash_bytes(back, sizeof back);
}

static void more_types(void) {
    MPI_Datatype types[7], nested[2];
    int sizes[2] = {4, 6}, subsizes[2] = {2, 3}, starts[2] = {1, 2}, ones[2] = {1, 2};
    int gsizes[2] = {8, 4}, distribs[2] = {MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_BLOCK};
    int dargs[2] = {2, MPI_DISTRIBUTE_DFLT_DARG}, psizes[2] = {size, 1};
    MPI_Aint far[2] = {8, 40}, lb, extent;
    int integers, addresses, datatypes, combiner;
    MPI_Type_create_subarray(2, sizes, subsizes, starts, MPI_ORDER_FORTRAN, MPI_INT, &types[0]);
    MPI_Type_create_darray(size, rank, 2, gsizes, distribs, dargs, psizes, MPI_ORDER_C, MPI_INT, &types[1]);
    MPI_Type_create_hindexed_block(2, 2, far, MPI_INT, &types[2]);
    MPI_Type_create_resized(types[2], -4, 96, &types[3]);
    nested[0] = types[2], nested[1] = MPI_INT;
    MPI_Type_create_struct(2, ones, far, nested, &types[4]);
    MPI_Type_dup(types[4], &types[5]);
    MPI_Type_create_f90_integer(9, &types[6]);
    for (int i = 0; i < 6; ++i) MPI_Type_commit(&types[i]);
    MPI_Type_free(&types[2]); /* its children live on */
    hold();
    for (int i = 0; i < 7; ++i)
        if (i != 2) hash_picked(types[i]);
    MPI_Type_get_extent(types[3], &lb, &extent);
    CHECK(lb == -4 && extent == 96);
    MPI_Type_get_envelope(types[1], &integers, &addresses, &datatypes, &combiner);
    CHECK(combiner == MPI_COMBINER_DARRAY && integers == 12 && addresses == 0 && datatypes == 1);
    MPI_Type_get_envelope(types[6], &integers, &addresses, &datatypes, &combiner);
    CHECK(combiner == MPI_COMBINER_F90_INTEGER && integers == 1);
    for (int i = 0; i < 6; ++i)
        if (i != 2) MPI_Type_free(&types[i]);
}

static int grequest_query(void* extra, MPI_Status* status) {
    MPI_Status_set_elements(status, MPI_INT, *(int*)extra);
    MPI_Status_set_cancelled(status, 0);
    status->MPI_SOURCE = 3, status->MPI_TAG = 4;
    return MPI_SUCCESS;
}
static int grequest_freed;
static int grequest_free(void* extra) { return (void)extra, grequest_freed++, MPI_SUCCESS; }
static int grequest_cancel(void* extra, int complete) { return (void)extra, (void)complete, MPI_SUCCESS; }

/* A generalized request, started persistent ones, one that was freed while active, a cancelled receive. */
static void more_requests(void) {
    MPI_Request general, pair[2], lost, cancelled;
    MPI_Status status;
    int extra = 17, out = 30 + rank, in = -1, other = 70 + rank, got = -1, never, flag, count;
    MPI_Grequest_start(grequest_query, grequest_free, grequest_cancel, &extra, &general);
    MPI_Recv_init(&in, 1, MPI_INT, left, 1, MPI_COMM_WORLD, &pair[0]);
    MPI_Ssend_init(&out, 1, MPI_INT, right, 1, MPI_COMM_WORLD, &pair[1]);
    MPI_Start(&pair[0]);
    MPI_Isend(&other, 1, MPI_INT, right, 2, MPI_COMM_WORLD, &lost);
    MPI_Request_free(&lost);
    MPI_Irecv(&never, 1, MPI_INT, left, 99, MPI_COMM_WORLD, &cancelled);
    hold();
    MPI_Test(&general, &flag, &status);
    CHECK(!flag);
    MPI_Grequest_complete(general);
    MPI_Wait(&general, &status);
    MPI_Get_count(&status, MPI_INT, &count);
    CHECK(count == 17 && status.MPI_SOURCE == 3 && grequest_freed == 1);
    MPI_Start(&pair[1]);
    MPI_Waitall(2, pair, MPI_STATUSES_IGNORE);
    CHECK(in == 30 + left);
    MPI_Startall(2, pair);
    MPI_Waitall(2, pair, MPI_STATUSES_IGNORE);
    MPI_Recv(&got, 1, MPI_INT, left, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(got == 70 + left);
    MPI_Cancel(&cancelled);
    MPI_Wait(&cancelled, &status);
    MPI_Test_cancelled(&status, &flag);
    CHECK(flag);
    MPI_Request_free(&pair[0]);
    MPI_Request_free(&pair[1]);
    hash_bytes(&got, sizeof got);
}

static int self_deleted(MPI_Comm comm, int keyval, void* value, void* extra) {
    (void)keyval, (void)extra;
    if (comm == MPI_COMM_SELF && *(int*)value == 41 && rank == 0) printf("self_deletion: right\n");
    return MPI_SUCCESS;
}

/* The attribute of MPI_COMM_SELF is deleted by MPI_Finalize, after the restart. */
static void self_deletion(void) {
    static int value = 41;
    int keyval;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, self_deleted, &keyval, NULL);
    MPI_Comm_set_attr(MPI_COMM_SELF, keyval, &value);
    MPI_Comm_free_keyval(&keyval);
    hold();
}

static long resident_kb(void) {
    long pages = 0;
    FILE* file = fopen("/proc/self/statm", "r");
    if (file && fscanf(file, "%*d %ld", &pages) != 1) pages = 0;
    if (file) fclose(file);
    return pages * 4;
}

static void one_cycle(void) {
    MPI_Comm comm, grid, half;
    MPI_Datatype type, structure;
    MPI_Op op;
    MPI_Request request, both[3];
    MPI_Info info;
    MPI_Group group, part;
    MPI_Errhandler errors;
    int in = 1, out = 2, got = 0, sum, keyval, ones[2] = {1, 1};
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Type_vector(3, 1, 2, MPI_INT, &type);
    MPI_Type_commit(&type);
    MPI_Op_create(combine, 1, &op);
    MPI_Recv_init(&in, 1, MPI_INT, left, 1, comm, &request);
    MPI_Info_create(&info);
    MPI_Info_set(info, "key", "value");
    MPI_Info_free(&info);
    MPI_Request_free(&request);
    MPI_Cart_create(comm, 1, (int[1]){size}, (int[1]){1}, 0, &grid);
    MPI_Comm_split(comm, rank % 2, rank, &half);
    MPI_Comm_group(comm, &group);
    MPI_Group_incl(group, 1, (int[1]){0}, &part);
    MPI_Comm_create_errhandler(handler, &errors);
    MPI_Comm_set_errhandler(half, errors);
    MPI_Errhandler_free(&errors);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &keyval, NULL);
    MPI_Comm_set_attr(half, keyval, &in);
    MPI_Comm_free_keyval(&keyval);
    MPI_Type_create_struct(2, ones, (MPI_Aint[2]){0, 64}, (MPI_Datatype[2]){type, MPI_DOUBLE}, &structure);
    MPI_Irecv(&got, 1, MPI_INT, left, 5, comm, &both[0]);
    MPI_Isend(&out, 1, MPI_INT, right, 5, grid, &both[1]);
    MPI_Irecv(&got, 1, MPI_INT, left, 5, grid, &both[2]);
    MPI_Send(&out, 1, MPI_INT, right, 5, comm);
    MPI_Waitall(3, both, MPI_STATUSES_IGNORE);
    MPI_Iallreduce(&in, &sum, 1, MPI_INT, op, comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Type_free(&structure);
    MPI_Group_free(&part);
    MPI_Group_free(&group);
    MPI_Comm_free(&half);
    MPI_Comm_free(&grid);
    MPI_Op_free(&op);
    MPI_Type_free(&type);
    MPI_Comm_free(&comm);
}

static void many_cycles(int n) {
    long before, more,
        allowed = 300 + n / 10; /* kB; what a leak leaves of each cycle would be five objects */
    for (int i = 0; i < n / 5 + 100; ++i) one_cycle(); /* MPICH 4.2 fills its pools for longer */
    before = resident_kb();
    for (int i = 0; i < n; ++i) one_cycle();
    more = resident_kb() - before;
    if (more > allowed) printf("rank %d: %ld kB more\n", rank, more);
    CHECK(more <= allowed);
}

/* Objects of every kind, made and freed, CYCLES times (and AFTER times after the hold): nothing grows, before
 * and after the restart. */
static void cycles(void) {
    int all = getenv("CYCLES") ? atoi(getenv("CYCLES")) : 120;
    many_cycles(all / 2);
    hold();
    many_cycles(getenv("AFTER") ? atoi(getenv("AFTER")) : all / 2);
}

static const struct {
    const char* name;
    void (*run)(void);
} cases[] = {
    {"drained_status_ignore", drained_status_ignore},
    {"drained_probed", drained_probed},
    {"drained_strided", drained_strided},
    {"drained_dup", drained_dup},
    {"drained_order", drained_order},
    {"posted_receives", posted_receives},
    {"matched_message", matched_message},
    {"persistent", persistent},
    {"needed_before_collective", needed_before_collective},
    {"pending_collectives", pending_collectives},
    {"sparse_exchange", sparse_exchange},
    {"synchronous", synchronous},
    {"sparse_wait", sparse_wait},
    {"blocked_ssend", blocked_ssend},
    {"first_ssend", first_ssend},
    {"taken_beside", taken_beside},
    {"cancelled", cancelled},
    {"tools", tools},
    {"half_told_collective", half_told_collective},
    {"dup_of_world", dup_of_world},
    {"topology", topology},
    {"grids", grids},
    {"properties", properties},
    {"added_errors", added_errors},
    {"sparse_memory", sparse_memory},
    {"profiled", profiled},
    {"user_ops", user_ops},
    {"derived_types", derived_types},
    {"groups", groups},
    {"freed_in_use", freed_in_use},
    {"buffered", buffered},
    {"large_captive_send", large_captive_send},
    {"blocked_receive", blocked_receive},
    {"polling", polling},
    {"appended", appended},
    {"in_finalize", in_finalize},
    {"before_init", before_init},
    {"inter_communicators", inter_communicators},
    {"more_types", more_types},
    {"more_requests", more_requests},
    {"self_deletion", self_deletion},
    {"cycles", cycles},
    {"held_communicators", held_communicators},
    {"held_types", held_types},
    {"held_collectives", held_collectives},
    {"held_neighbours", held_neighbours},
    {"held_messages", held_messages},
    {"held_windows", held_windows},
    {"held_locks", held_locks},
    {"passive_target", passive_target},
    {"held_files", held_files},
    {"held_file_requests", held_file_requests},
    {"held_sequential", held_sequential},
    {"held_one_sided", held_one_sided},
    {"held_exposures", held_exposures},
    {"blocked_exposures", blocked_exposures},
    {"held_beginnings", held_beginnings},
#ifndef OPEN_MPI
    {"held_persistent", held_persistent},
    {"held_inits", held_inits},
    {"held_neighbour_inits", held_neighbour_inits},
    {"sessions_only", sessions_only},
#endif
};

int main(int argc, char** argv) {
#ifdef RECORDER_H
    rec_constants();
#endif
    if (argc > 1 && strcmp(argv[1], "before_init") == 0 && rank_before_init() % 2 != 0) hold_here(0);
#ifndef OPEN_MPI
    if (argc > 1 && strcmp(argv[1], "sessions_only") == 0) {
        sessions_only();
#ifdef RECORDER_H
        rec_write(getenv("RECORD_PREFIX"), atoi(getenv("PMI_RANK")));
#endif
        return 0;
    }
#endif
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    right = (rank + 1) % size, left = (rank + size - 1) % size;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        if (argc < 2 || strcmp(cases[i].name, argv[1]) != 0) continue;
        cases[i].run();
        if (cases[i].run != in_finalize && cases[i].run != self_deletion) {
            hash_bytes(&rank, sizeof rank);
            verdict(argv[1]);
        }
        MPI_Finalize();
#ifdef RECORDER_H
        rec_write(getenv("RECORD_PREFIX"), rank);
#endif
        return 0;
    }
    fprintf(stderr, "trap: no case named %s\n", argc > 1 ? argv[1] : "(none)");
    MPI_Abort(MPI_COMM_WORLD, 2);
    return 2;
}
