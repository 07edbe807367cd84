/* Latency and overlap of collectives. Each line: name, bytes, median over batches of the time per operation
 * in ns; for non-blocking ones also how much of it computation can hide, in per cent.
 *   collectives [BATCHES [BYTES [blocking]]]    up to so many bytes; "blocking": only those */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "median.h"

enum { MAX_BATCHES = 200, LARGEST = 1 << 20 };
static int rank, size, batches = 20;
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
static double time_blocking(Blocking* f, int bytes, int repeat) {
    double times[MAX_BATCHES];
    for (int b = -2; b < batches; ++b) {
        double mine = 0, all = 0;
        for (int i = 0; i < repeat; ++i) {
            MPI_Barrier(W);
            double start = MPI_Wtime();
            f(bytes);
            mine += MPI_Wtime() - start;
        }
        MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, W);
        if (b >= 0) times[b] = all / size / repeat * 1e9;
    }
    return median(times, batches);
}
static double time_nonblocking(Starting* f, int bytes, int repeat, double work_ns) {
    double times[MAX_BATCHES];
    for (int b = -2; b < batches; ++b) {
        MPI_Barrier(W);
        double start = MPI_Wtime();
        for (int i = 0; i < repeat; ++i) {
            MPI_Request request;
            f(bytes, &request);
            if (work_ns > 0) compute(work_ns);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        }
        if (b >= 0) times[b] = (MPI_Wtime() - start) / repeat * 1e9;
    }
    return median(times, batches);
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
    for (unsigned k = 0; k < sizeof kinds / sizeof *kinds; ++k)
        for (unsigned s = 0; s < 3; ++s) {
            int bytes = sizes[s], repeat = bytes < LARGEST ? 1000 : 10;
            if (bytes > most || (kinds[k].blocking == barrier && s > 0)) continue;
            double plain = time_blocking(kinds[k].blocking, bytes, repeat);
            if (rank == 0) printf("%s %d %.1f\n", kinds[k].name, bytes, plain);
            if (!all) continue;
            double pure = time_nonblocking(kinds[k].starting, bytes, repeat, 0);
            /* The same work on every rank, or the slower one's would count as communication. */
            double work = pure;
            MPI_Bcast(&work, 1, MPI_DOUBLE, 0, W);
            double together = time_nonblocking(kinds[k].starting, bytes, repeat, work);
            double hidden = 100 * (1 - (together - work) / pure);
            if (rank == 0) printf("i%s %d %.1f %.1f\n", kinds[k].name, bytes, pure, hidden);
        }
    MPI_Finalize();
    return 0;
}
