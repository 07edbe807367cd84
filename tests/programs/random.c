/* A correct MPI program drawn from a seed: `random SEED STEPS [PAUSE_US]`. Every rank draws the same plan (so
 * that calls match) and its own timing and ways of waiting; requests stay open over many steps, objects come
 * and go. Whole numbers only, so that every library gives the same; the hash is a sum over operations, so
 * that the order in which they end does not matter. */
#include "hold.h"

enum { COMMS = 6, TYPES = 6, OPS = 4, WINDOWS = 3, OPEN = 24, PERSISTENT = 4, WORDS = 512, MOST = 64 };

static unsigned long long plan, mine; /* states of the two generators: all ranks' and this one's */
static int rank, size, opid, pause_us;
static unsigned long long seed, sum;

static unsigned long long mix(unsigned long long x) {
    x += 0x9e3779b97f4a7c15ULL;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
    return x ^ (x >> 31);
}
static unsigned draw(unsigned n) { return (unsigned)((plan = mix(plan)) % n); }
static unsigned own(unsigned n) { return (unsigned)((mine = mix(mine)) % n); }

static void take(int id, const int* data, int n) {
    unsigned long long h = mix(seed ^ (unsigned)id);
    for (int i = 0; i < n; ++i) h = mix(h ^ (unsigned)data[i]);
    sum += h;
}
static int value(int id, int from, int i) {
    return (int)(mix(mix(seed + (unsigned)id) ^ mix((unsigned)from * 977 + (unsigned)i)) & 0xfffffff);
}
static int* fresh(int id) {
    int* data = malloc(WORDS * sizeof *data);
    for (int i = 0; i < WORDS; ++i) data[i] = value(id, rank, i);
    return data;
}
static int* blank(void) {
    int* data = malloc(WORDS * sizeof *data);
    for (int i = 0; i < WORDS; ++i) data[i] = -1;
    return data;
}

/* ---- communicators: a slot is one communicator for each rank, a part of the world ---- */

static struct {
    MPI_Comm comm;
    int rank, size, ring; /* ring: a periodic cartesian one */
} comms[COMMS];

static void keep_comm(int slot, MPI_Comm comm, int ring) {
    comms[slot].comm = comm, comms[slot].ring = ring;
    MPI_Comm_rank(comm, &comms[slot].rank);
    MPI_Comm_size(comm, &comms[slot].size);
}
static int any_comm(void) {
    int slot = (int)draw(COMMS);
    while (comms[slot].comm == MPI_COMM_NULL) slot = (slot + 1) % COMMS;
    return slot;
}
static int comm_in_use(int slot);

static void make_comm(void) {
    int slot = 1 + (int)draw(COMMS - 1), from = any_comm(), kind = (int)draw(6);
    unsigned a = draw(7), b = draw(3);
    if (comms[slot].comm != MPI_COMM_NULL) {
        if (comm_in_use(slot) || from == slot) return;
        MPI_Comm_free(&comms[slot].comm);
    }
    MPI_Comm parent = comms[from].comm, made, other;
    int r = comms[from].rank, n = comms[from].size, periods[1] = {1}, dims[1] = {n};
    if (kind == 0) {
        MPI_Comm_dup(parent, &made);
    } else if (kind == 1) {
        MPI_Comm_split(parent, (int)((unsigned)r * (a + 1) / 2 % (b + 1)), (int)((unsigned)r * 5 % 7), &made);
    } else if (kind == 2) {
        MPI_Cart_create(parent, 1, dims, periods, 0, &made);
    } else if (kind == 3) {
        MPI_Request request;
        MPI_Comm_idup(parent, &made, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else if (kind == 4 && n >= 2) {
        /* two halves, joined again the other way round */
        MPI_Comm_split(parent, r % 2, r, &other);
        MPI_Comm inter;
        MPI_Intercomm_create(other, 0, parent, r % 2 ? 0 : 1, (int)a, &inter);
        int all = 0;
        MPI_Allreduce(&r, &all, 1, MPI_INT, MPI_SUM, inter);
        take(opid, &all, 1);
        MPI_Intercomm_merge(inter, b ? r % 2 : 1 - r % 2, &made);
        MPI_Comm_free(&inter);
        MPI_Comm_free(&other);
    } else {
        MPI_Group group, part;
        int range[1][3] = {{r % 2, n - 1, 2}};
        MPI_Comm_group(parent, &group);
        MPI_Group_range_incl(group, 1, range, &part);
        MPI_Comm_create_group(parent, part, (int)a, &made);
        MPI_Group_free(&part);
        MPI_Group_free(&group);
    }
    keep_comm(slot, made, kind == 2);
}

/* ---- datatypes of whole numbers ---- */

static struct {
    MPI_Datatype type;
    int ints, span; /* numbers in it, words from its place to its end */
} types[TYPES];

static void make_type(void) {
    int slot = (int)draw(TYPES), base = (int)draw(TYPES + 1), kind = (int)draw(7);
    MPI_Datatype old = base < TYPES && types[base].type != MPI_DATATYPE_NULL ? types[base].type : MPI_INT,
                 made;
    int lengths[3] = {1 + (int)draw(2), 1, 2}, places[3] = {0, 3, 5}, sizes[2] = {4, 5}, subsizes[2] = {2, 3},
        starts[2] = {1, 1};
    MPI_Aint lb, extent, far[3] = {4, 256, 640};
    MPI_Datatype kinds[3] = {old, MPI_INT, old};
    int n = 1 + (int)draw(3), bytes;
    switch (kind) {
        case 0:
            MPI_Type_contiguous(n, old, &made);
            break;
        case 1:
            MPI_Type_vector(n, 1, 2, old, &made);
            break;
        case 2:
            MPI_Type_indexed(3, lengths, places, old, &made);
            break;
        case 3:
            MPI_Type_create_struct(3, lengths, far, kinds, &made);
            break;
        case 4:
            MPI_Type_create_subarray(2, sizes, subsizes, starts, n == 1 ? MPI_ORDER_C : MPI_ORDER_FORTRAN,
                                     old, &made);
            break;
        case 5:
            MPI_Type_create_hvector(n, 1, 1024, old, &made);
            break;
        default:
            MPI_Type_dup(old, &made);
    }
    MPI_Type_get_true_extent(made, &lb, &extent);
    MPI_Type_size(made, &bytes);
    if (lb < 0 || lb + extent > WORDS * 4 || bytes > MOST * 4 || bytes == 0) {
        MPI_Type_free(&made);
        return;
    }
    if (types[slot].type != MPI_DATATYPE_NULL) MPI_Type_free(&types[slot].type);
    MPI_Type_commit(&made);
    types[slot].type = made, types[slot].ints = bytes / 4, types[slot].span = (int)(lb + extent) / 4;
}
static MPI_Datatype any_type(int* ints) {
    int slot = (int)draw(TYPES);
    if (types[slot].type == MPI_DATATYPE_NULL) return *ints = 1, MPI_INT;
    return *ints = types[slot].ints, types[slot].type;
}

/* ---- operations ---- */

static void add_modulo(void* a, void* b, int* n, MPI_Datatype* type) {
    (void)type;
    for (int i = 0; i < 4 * *n; ++i) ((int*)b)[i] = (((int*)a)[i] % 10007 + ((int*)b)[i] % 10007) % 10007;
}
static void multiply(void* a, void* b, int* n, MPI_Datatype* type) {
    (void)type;
    for (int k = 0; k < *n; ++k) {
        long long x[4], y[4];
        int* p = (int*)b + 4 * k;
        for (int i = 0; i < 4; ++i) x[i] = ((int*)a)[4 * k + i] % 1009, y[i] = p[i] % 1009;
        p[0] = (int)((x[0] * y[0] + x[1] * y[2]) % 1009), p[1] = (int)((x[0] * y[1] + x[1] * y[3]) % 1009);
        p[2] = (int)((x[2] * y[0] + x[3] * y[2]) % 1009), p[3] = (int)((x[2] * y[1] + x[3] * y[3]) % 1009);
    }
}
static MPI_Op ops[OPS];
static MPI_Datatype quad;

static void make_op(void) {
    int slot = (int)draw(OPS);
    if (ops[slot] != MPI_OP_NULL) MPI_Op_free(&ops[slot]); /* open reductions keep it */
    if (draw(2))
        MPI_Op_create(add_modulo, 1, &ops[slot]);
    else
        MPI_Op_create(multiply, 0, &ops[slot]);
}

/* ---- open requests ---- */

static struct open {
    MPI_Request request;
    int used, id, n, slot;
    int *in, *out;
} opened[OPEN];

static int comm_in_use(int slot) {
    for (int i = 0; i < OPEN; ++i)
        if (opened[i].used && opened[i].slot == slot) return 1;
    return 0;
}

static struct open* place(int slot, int id) {
    for (int i = 0; i < OPEN; ++i)
        if (!opened[i].used) {
            opened[i] = (struct open){MPI_REQUEST_NULL, 1, id, 0, slot, NULL, NULL};
            return &opened[i];
        }
    return NULL;
}

static void finished(struct open* o) {
    if (o->in) take(o->id, o->in, o->n);
    free(o->in);
    free(o->out);
    o->used = 0;
}

/* In the ways there are to wait; which ones, the plan says, how, this rank. */
static void complete(int many) {
    MPI_Request list[OPEN];
    int from[OPEN], n = 0, index, flag;
    for (int i = 0; i < OPEN && n < many; ++i)
        if (opened[i].used) list[n] = opened[i].request, from[n++] = i;
    switch (own(5)) {
        case 0:
            for (int i = 0; i < n; ++i) MPI_Wait(&list[i], MPI_STATUS_IGNORE);
            break;
        case 1:
            MPI_Waitall(n, list, MPI_STATUSES_IGNORE);
            break;
        case 2:
            for (int i = 0; i < n; ++i) MPI_Waitany(n, list, &index, MPI_STATUS_IGNORE);
            break;
        case 3:
            for (flag = 0; !flag; usleep(own(50))) MPI_Testall(n, list, &flag, MPI_STATUSES_IGNORE);
            break;
        default:
            for (int i = 0; i < n; ++i)
                for (flag = 0; !flag;) MPI_Test(&list[i], &flag, MPI_STATUS_IGNORE);
    }
    for (int i = 0; i < n; ++i) finished(&opened[from[i]]);
}
static int open_count(void) {
    int n = 0;
    for (int i = 0; i < OPEN; ++i) n += opened[i].used;
    return n;
}

/* ---- what a step does ---- */

static void exchange(void) {
    int slot = any_comm(), ints, shift, kind = (int)draw(6), tag = opid % 30000, bytes;
    MPI_Comm comm = comms[slot].comm;
    int n = comms[slot].size, r = comms[slot].rank;
    MPI_Datatype type = any_type(&ints);
    shift = (int)draw((unsigned)n + 1);
    int to = (r + shift) % n, from = (r + n - shift % n) % n;
    int *out = fresh(opid), *in = blank();
    MPI_Request send, receive;
    MPI_Status status;
    if (kind == 0) {
        MPI_Sendrecv(out, 1, type, to, tag, in, WORDS, MPI_INT, from, tag, comm, &status);
        MPI_Get_count(&status, MPI_INT, &bytes);
        CHECK(bytes == ints && status.MPI_SOURCE == from);
    } else if (kind == 1) {
        MPI_Isend(out, 1, type, to, tag, comm, &send);
        MPI_Probe(own(2) ? MPI_ANY_SOURCE : from, tag, comm, &status);
        MPI_Get_count(&status, MPI_INT, &bytes);
        CHECK(bytes == ints && status.MPI_SOURCE == from);
        MPI_Recv(in, ints, MPI_INT, from, tag, comm, MPI_STATUS_IGNORE);
        MPI_Wait(&send, MPI_STATUS_IGNORE);
    } else if (kind == 2) {
        MPI_Message message;
        MPI_Issend(out, 1, type, to, tag, comm, &send);
        MPI_Mprobe(MPI_ANY_SOURCE, tag, comm, &message, &status);
        if (own(2)) usleep(own(300));
        MPI_Mrecv(in, WORDS, MPI_INT, &message, MPI_STATUS_IGNORE);
        MPI_Wait(&send, MPI_STATUS_IGNORE);
    } else if (kind == 3) {
        MPI_Bsend(out, 1, type, to, tag, comm);
        MPI_Recv(in, 1, type, own(2) ? MPI_ANY_SOURCE : from, tag, comm, &status);
        CHECK(status.MPI_SOURCE == from);
    } else {
        MPI_Irecv(in, 1, type, kind == 4 ? from : MPI_ANY_SOURCE, tag, comm, &receive);
        if (own(3) == 0) usleep(own(200));
        MPI_Send(out, 1, type, to, tag, comm);
        MPI_Wait(&receive, &status);
        CHECK(status.MPI_SOURCE == from && status.MPI_TAG == tag);
    }
    take(opid, in, WORDS);
    free(in);
    free(out);
}

static void open_exchange(void) {
    int slot = any_comm(), ints, tag = opid % 30000, synchronous = (int)draw(2);
    int n = comms[slot].size, r = comms[slot].rank, shift = (int)draw((unsigned)n);
    MPI_Datatype type = any_type(&ints);
    if (open_count() + 2 > OPEN) return;
    struct open *receive = place(slot, opid), *send = place(slot, opid);
    receive->in = blank(), receive->n = WORDS, send->out = fresh(opid);
    int first = (int)own(2);
    for (int turn = 0; turn < 2; ++turn) {
        if (turn == first)
            MPI_Irecv(receive->in, 1, type, own(3) ? (r + n - shift) % n : MPI_ANY_SOURCE, tag,
                      comms[slot].comm, &receive->request);
        else if (synchronous)
            MPI_Issend(send->out, 1, type, (r + shift) % n, tag, comms[slot].comm, &send->request);
        else
            MPI_Isend(send->out, 1, type, (r + shift) % n, tag, comms[slot].comm, &send->request);
    }
}

/* The collective `kind` on data of `out`; with a request if `q`. */
static int collective(int slot, int kind, const int* out, int* in, MPI_Op op, MPI_Request* q) {
    MPI_Comm c = comms[slot].comm;
    int n = comms[slot].size, root = (int)draw(64) % n;
    static int counts[MOST], places[MOST]; /* the same always: an open request may read them */
    for (int i = 0; i < MOST; ++i) counts[i] = 1 + i % 3, places[i] = 4 * i;
    int mine_now = counts[comms[slot].rank];
#define BOTH(Blocking, Other, ...) (q ? MPI_##Other(__VA_ARGS__, q) : MPI_##Blocking(__VA_ARGS__))
    switch (kind) {
        case 0:
            BOTH(Bcast, Ibcast, comms[slot].rank == root ? (int*)out : in, 8, MPI_INT, root, c);
            return 8;
        case 1:
            BOTH(Allreduce, Iallreduce, out, in, 8, MPI_INT, MPI_BXOR, c);
            return 8;
        case 2:
            BOTH(Allreduce, Iallreduce, out, in, 2, quad, op, c);
            return 8;
        case 3:
            BOTH(Allgather, Iallgather, out, 3, MPI_INT, in, 3, MPI_INT, c);
            return 3 * n;
        case 4:
            BOTH(Alltoall, Ialltoall, out, 2, MPI_INT, in, 2, MPI_INT, c);
            return 2 * n;
        case 5:
            BOTH(Reduce, Ireduce, out, in, 2, quad, op, root, c);
            return comms[slot].rank == root ? 8 : 0;
        case 6:
            BOTH(Scan, Iscan, out, in, 2, quad, op, c);
            return 8;
        case 7:
            BOTH(Gatherv, Igatherv, out, mine_now, MPI_INT, in, counts, places, MPI_INT, root, c);
            return 4 * n;
        case 8:
            BOTH(Scatterv, Iscatterv, out, counts, places, MPI_INT, in, mine_now, MPI_INT, root, c);
            return mine_now;
        case 9:
            BOTH(Allgatherv, Iallgatherv, out, mine_now, MPI_INT, in, counts, places, MPI_INT, c);
            return 4 * n;
        case 10:
            BOTH(Exscan, Iexscan, out, in, 4, MPI_INT, MPI_MAX, c);
            return 4;
        case 11:
            BOTH(Reduce_scatter_block, Ireduce_scatter_block, out, in, 3, MPI_INT, MPI_BXOR, c);
            return 3;
        default:
            if (q)
                MPI_Ibarrier(c, q);
            else
                MPI_Barrier(c);
            return 0;
    }
}

static void together(int non_blocking) {
    int slot = any_comm(), kind = (int)draw(13);
    MPI_Op op = ops[draw(OPS)];
    if (op == MPI_OP_NULL) op = ops[0];
    if (non_blocking) {
        if (open_count() + 1 > OPEN) return;
        struct open* o = place(slot, opid);
        o->out = fresh(opid), o->in = blank();
        o->n = collective(slot, kind, o->out, o->in, op, &o->request);
        return;
    }
    int *out = fresh(opid), *in = blank();
    take(opid, in, collective(slot, kind, out, in, op, NULL));
    free(in);
    free(out);
}

static void neighbours(void) {
    int slot = any_comm();
    int *out = fresh(opid), *in = blank();
    if (comms[slot].ring) {
        if (draw(2))
            MPI_Neighbor_alltoall(out, 2, MPI_INT, in, 2, MPI_INT, comms[slot].comm);
        else
            MPI_Neighbor_allgather(out, 3, MPI_INT, in, 3, MPI_INT, comms[slot].comm);
        take(opid, in, 6);
    }
    free(in);
    free(out);
}

/* ---- persistent requests: a pair around a communicator ---- */

static struct {
    MPI_Request pair[2];
    int used, active, slot, *in, *out;
} lasting[PERSISTENT];

static void persistent(void) {
    int k = (int)draw(PERSISTENT);
    if (!lasting[k].used) {
        int tag = 30001 + k;
        MPI_Comm comm = comms[0].comm;
        lasting[k].used = 1, lasting[k].active = 0, lasting[k].in = blank(), lasting[k].out = blank();
        MPI_Recv_init(lasting[k].in, 5, MPI_INT, (rank + size - 1) % size, tag, comm, &lasting[k].pair[0]);
        if (draw(2))
            MPI_Ssend_init(lasting[k].out, 5, MPI_INT, (rank + 1) % size, tag, comm, &lasting[k].pair[1]);
        else
            MPI_Send_init(lasting[k].out, 5, MPI_INT, (rank + 1) % size, tag, comm, &lasting[k].pair[1]);
    } else if (!lasting[k].active) {
        if (draw(4) == 0) {
            MPI_Request_free(&lasting[k].pair[0]);
            MPI_Request_free(&lasting[k].pair[1]);
            free(lasting[k].in), free(lasting[k].out);
            lasting[k].used = 0;
            return;
        }
        for (int i = 0; i < 5; ++i) lasting[k].out[i] = value(opid, rank, i);
        lasting[k].active = opid;
        if (own(2))
            MPI_Startall(2, lasting[k].pair);
        else
            MPI_Start(&lasting[k].pair[1]), MPI_Start(&lasting[k].pair[0]);
    } else {
        MPI_Waitall(2, lasting[k].pair, MPI_STATUSES_IGNORE);
        for (int i = 0; i < 5; ++i)
            CHECK(lasting[k].in[i] == value(lasting[k].active, (rank + size - 1) % size, i));
        take(opid, lasting[k].in, 5);
        lasting[k].active = 0;
    }
}

/* ---- windows on the world ---- */

static struct {
    MPI_Win win;
    int *base, ours;
} windows[WINDOWS];

static void window(void) {
    int k = (int)draw(WINDOWS), target = (rank + 1 + (int)draw((unsigned)size)) % size, what = (int)draw(4),
        at = (int)draw(8);
    int data[4], got[4] = {0, 0, 0, 0};
    for (int i = 0; i < 4; ++i) data[i] = value(opid, rank, i) % 1000;
    if (windows[k].win == MPI_WIN_NULL) {
        windows[k].ours = (int)draw(3) == 0;
        if (windows[k].ours) {
            if (posix_memalign((void**)&windows[k].base, 64, 64 * sizeof(int)) != 0) abort();
            MPI_Win_create(windows[k].base, 64 * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD,
                           &windows[k].win);
        } else if (k == 2) {
            MPI_Win_allocate_shared(64 * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD,
                                    &windows[k].base, &windows[k].win);
        } else {
            MPI_Win_allocate(64 * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &windows[k].base,
                             &windows[k].win);
        }
        for (int i = 0; i < 64; ++i) windows[k].base[i] = 0;
        MPI_Win_fence(0, windows[k].win);
        return;
    }
    MPI_Win win = windows[k].win;
    if (what == 3 && at == 0) {
        MPI_Win_free(&windows[k].win);
        if (windows[k].ours) free(windows[k].base);
        return;
    }
    MPI_Win_fence(0, win);
    if (what == 0) {
        MPI_Put(data, 4, MPI_INT, target, 4 * at, 4, MPI_INT, win);
    } else if (what == 1) {
        MPI_Accumulate(data, 4, MPI_INT, 0, 32, 4, MPI_INT, MPI_SUM, win);
    } else if (what == 2) {
        MPI_Get(got, 4, MPI_INT, target, 4 * at, 4, MPI_INT, win);
    } else {
        MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
        MPI_Win_lock(own(2) ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED, target, 0, win);
        MPI_Accumulate(data, 4, MPI_INT, target, 40, 4, MPI_INT, MPI_SUM, win);
        MPI_Win_unlock(target, win);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Win_fence(0, win);
    take(opid, got, 4);
    take(opid, windows[k].base, 64);
    MPI_Barrier(MPI_COMM_WORLD); /* before a neighbour's next epoch changes it */
}

static void say(int step) {
    unsigned long long all = 0;
    MPI_Reduce(&sum, &all, 1, MPI_UNSIGNED_LONG_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) printf("step %d %016llx\n", step, all), fflush(stdout);
}

int main(int argc, char** argv) {
    static char space[200000];
    void* address;
    int steps = argc > 2 ? atoi(argv[2]) : 200, n;
    seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    pause_us = argc > 3 ? atoi(argv[3]) : 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    CHECK(size <= MOST / 4);
    plan = mix(seed), mine = mix(seed ^ mix((unsigned)rank + 1));
    for (int i = 0; i < COMMS; ++i) comms[i].comm = MPI_COMM_NULL;
    for (int i = 0; i < TYPES; ++i) types[i].type = MPI_DATATYPE_NULL;
    for (int i = 0; i < OPS; ++i) ops[i] = MPI_OP_NULL;
    for (int i = 0; i < WINDOWS; ++i) windows[i].win = MPI_WIN_NULL;
    MPI_Comm world;
    MPI_Comm_dup(MPI_COMM_WORLD, &world);
    keep_comm(0, world, 0);
    MPI_Type_contiguous(4, MPI_INT, &quad);
    MPI_Type_commit(&quad);
    MPI_Op_create(multiply, 0, &ops[0]);
    MPI_Buffer_attach(space, sizeof space);
    for (int step = 0; step < steps; ++step) {
        opid = step + 1;
        unsigned what = draw(100);
        if (what < 20)
            exchange();
        else if (what < 36)
            open_exchange();
        else if (what < 50)
            together(0);
        else if (what < 66)
            together(1);
        else if (what < 76)
            complete((int)draw(8) + 1);
        else if (what < 81)
            make_comm();
        else if (what < 86)
            make_type();
        else if (what < 88)
            make_op();
        else if (what < 91)
            neighbours();
        else if (what < 95)
            persistent();
        else
            window();
        if (pause_us && own(4) == 0) usleep(own((unsigned)pause_us));
        if (step % 20 == 19) say(step);
    }
    complete(OPEN);
    for (int k = 0; k < PERSISTENT; ++k) {
        if (!lasting[k].used) continue;
        if (lasting[k].active)
            MPI_Waitall(2, lasting[k].pair, MPI_STATUSES_IGNORE), take(steps + k, lasting[k].in, 5);
        MPI_Request_free(&lasting[k].pair[0]), MPI_Request_free(&lasting[k].pair[1]);
    }
    for (int k = 0; k < WINDOWS; ++k)
        if (windows[k].win != MPI_WIN_NULL) MPI_Win_free(&windows[k].win);
    say(steps);
    MPI_Buffer_detach(&address, &n);
    hash_state = sum;
    verdict("random");
    for (int i = 0; i < COMMS; ++i)
        if (comms[i].comm != MPI_COMM_NULL) MPI_Comm_free(&comms[i].comm);
    for (int i = 0; i < TYPES; ++i)
        if (types[i].type != MPI_DATATYPE_NULL) MPI_Type_free(&types[i].type);
    for (int i = 0; i < OPS; ++i)
        if (ops[i] != MPI_OP_NULL) MPI_Op_free(&ops[i]);
    MPI_Type_free(&quad);
    MPI_Finalize();
    return 0;
}
