/* Latency and overlap of collectives, batch by batch in turns with other jobs (turn.h). Each line: name,
 * bytes, time per operation in ns; NAME:overlap how much of a non-blocking one computation hid, in per cent.
 *   collectives [BATCHES [BYTES [blocking]]]    up to so many bytes; "blocking": only those */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "median.h"
#include "turn.h"

enum { MAX_BATCHES = 1000, LARGEST = 1 << 20 };
static int rank, size, batches = 50;
static char *in, *out;
static volatile double sink;

typedef void Blocking(int bytes);
typedef void Starting(int bytes, MPI_Request* request);

/* Doubles for the reductions, bytes for the rest; 4 bytes are one float. */
static MPI_Datatype number(int bytes) { return bytes < 8 ? MPI_FLOAT : MPI_DOUBLE; }
static int numbers(int bytes) { return bytes < 8 ? bytes / 4 : bytes / 8; }
#define W MPI_COMM_WORLD
static void bcast(int b) { MPI_Bcast(out, b, MPI_BYTE, 0, W); }
static void reduce(int b) { MPI_Reduce(in, out, numbers(b), number(b), MPI_SUM, 0, W); }
static void allreduce(int b) { MPI_Allreduce(in, out, numbers(b), number(b), MPI_SUM, W); }
static void alltoall(int b) { MPI_Alltoall(in, b, MPI_BYTE, out, b, MPI_BYTE, W); }
static void allgather(int b) { MPI_Allgather(in, b, MPI_BYTE, out, b, MPI_BYTE, W); }
static void barrier(int b) { (void)b, MPI_Barrier(W); }
static void ibcast(int b, MPI_Request* r) { MPI_Ibcast(out, b, MPI_BYTE, 0, W, r); }
static void ireduce(int b, MPI_Request* r) { MPI_Ireduce(in, out, numbers(b), number(b), MPI_SUM, 0, W, r); }
static void iallreduce(int b, MPI_Request* r) {
    MPI_Iallreduce(in, out, numbers(b), number(b), MPI_SUM, W, r);
}
static void ialltoall(int b, MPI_Request* r) { MPI_Ialltoall(in, b, MPI_BYTE, out, b, MPI_BYTE, W, r); }
static void iallgather(int b, MPI_Request* r) { MPI_Iallgather(in, b, MPI_BYTE, out, b, MPI_BYTE, W, r); }
static void ibarrier(int b, MPI_Request* r) { (void)b, MPI_Ibarrier(W, r); }

static const struct {
    const char* name;
    Blocking* blocking;
    Starting* starting;
} kinds[] = {{"bcast", bcast, ibcast},
             {"reduce", reduce, ireduce},
             {"allreduce", allreduce, iallreduce},
             {"alltoall", alltoall, ialltoall},
             {"allgather", allgather, iallgather},
             {"barrier", barrier, ibarrier}};

static void compute(double ns) {
    double end = MPI_Wtime() + ns * 1e-9;
    while (MPI_Wtime() < end)
        for (int i = 0; i < 20; ++i) sink += i * 0.5;
}

/* Latency as the OSU micro-benchmarks define it: one operation at a time, a barrier between that is not
 * counted, the mean of all ranks. Back to back, a Bcast is the rate of a pipeline (bench/latency.c has that).
 */
static double blocking_batch(Blocking* f, int bytes, int repeat) {
    double mine = 0, all = 0;
    for (int i = -repeat / 4; i < repeat; ++i) {
        if (i == 0) mine = 0; /* caches are cold after the others' turns */
        MPI_Barrier(W);
        double start = MPI_Wtime();
        f(bytes);
        mine += MPI_Wtime() - start;
    }
    MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, W);
    return all / size / repeat * 1e9;
}
static double starting_batch(Starting* f, int bytes, int repeat, double work_ns) {
    double start = 0;
    for (int i = -repeat / 4; i < repeat; ++i) {
        if (i == -repeat / 4 || i == 0) MPI_Barrier(W);
        if (i == 0) start = MPI_Wtime();
        MPI_Request request;
        f(bytes, &request);
        if (work_ns > 0) compute(work_ns);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    return (MPI_Wtime() - start) / repeat * 1e9;
}

static void measure(unsigned kind, int starting, int bytes) {
    static double pure[MAX_BATCHES];
    int repeat = bytes < LARGEST ? 1000 : 10;
    char name[64];
    snprintf(name, sizeof name, "%s%s", starting ? "i" : "", kinds[kind].name);
    for (int b = 0; b < batches; ++b) {
        turn_wait();
        pure[b] = starting ? starting_batch(kinds[kind].starting, bytes, repeat, 0)
                           : blocking_batch(kinds[kind].blocking, bytes, repeat);
        if (rank == 0) turn_say(name, bytes, pure[b]);
    }
    if (!starting) return;
    strcat(name, ":overlap");
    /* The same work on every rank, or the slower one's would count as communication. */
    double work = median(pure, batches);
    MPI_Bcast(&work, 1, MPI_DOUBLE, 0, W);
    for (int b = 0; b < (batches + 3) / 4; ++b) { /* one at least; they are no ratios and need fewer */
        turn_wait();
        double together = starting_batch(kinds[kind].starting, bytes, repeat, work);
        if (rank == 0) turn_say(name, bytes, 100 * (1 - (together - work) / work));
    }
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(W, &rank);
    MPI_Comm_size(W, &size);
    if (argc > 1) batches = atoi(argv[1]);
    if (batches > MAX_BATCHES) batches = MAX_BATCHES;
    int most = argc > 2 ? atoi(argv[2]) : LARGEST;
    int all = argc < 4 || strcmp(argv[3], "blocking") != 0;
    in = calloc((size_t)size, LARGEST);
    out = calloc((size_t)size, LARGEST);
    static const int sizes[] = {4, 1024, LARGEST};
    for (int starting = 0; starting <= all; ++starting)
        for (unsigned k = 0; k < sizeof kinds / sizeof *kinds; ++k)
            for (unsigned s = 0; s < 3; ++s) {
                if (sizes[s] > most || (kinds[k].blocking == barrier && s > 0)) continue;
                measure(k, starting, sizes[s]);
            }
    MPI_Finalize();
    return 0;
}
