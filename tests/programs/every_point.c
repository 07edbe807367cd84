/* Steps that come by every kill point of the message log (src/base/kill_point.h): eager and large messages,
 * synchronous ones, probes, each kind of collective, blocking and not, communicators, a file that is written
 * and one that is read and written. Rank 0 prints a hash of all data so far after each step.
 *
 *   every_point STEPS PAUSE_US one|both [FILE]
 *
 * one: without the file that is read and written. It ends after fewer steps once rank 0 sees FILE. */
#include <fcntl.h>

#include "hold.h"

enum { SMALL = 64, LARGE = 1 << 17 }; /* doubles */

static double small[SMALL], large[LARGE], other[LARGE];
static int rank, size;

static void messages(int step) {
    MPI_Request requests[4];
    MPI_Status status;
    int right = (rank + 1) % size, left = (rank + size - 1) % size, token, count;
    double got[SMALL];
    MPI_Irecv(other, LARGE, MPI_DOUBLE, left, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(got, SMALL, MPI_DOUBLE, MPI_ANY_SOURCE, 2, MPI_COMM_WORLD, &requests[1]);
    MPI_Isend(small, SMALL, MPI_DOUBLE, right, 2, MPI_COMM_WORLD, &requests[2]);
    MPI_Isend(large, LARGE, MPI_DOUBLE, right, 1, MPI_COMM_WORLD, &requests[3]);
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
    hash_bytes(got, sizeof got);
    hash_bytes(other, 4096);
    MPI_Irecv(&token, 1, MPI_INT, left, 3, MPI_COMM_WORLD, &requests[0]);
    MPI_Issend(&step, 1, MPI_INT, right, 3, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    MPI_Isend(&step, 1, MPI_INT, left, 4, MPI_COMM_WORLD, &requests[0]);
    MPI_Probe(MPI_ANY_SOURCE, 4, MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, MPI_INT, &count);
    MPI_Recv(&token, count, MPI_INT, status.MPI_SOURCE, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    hash_bytes(&token, sizeof token);
}

static void collectives(int step) {
    double all[64 * SMALL], sum[SMALL], one = 0, scanned = 0;
    int counts[64], root = step % size, flag = 0, whole = 0;
    MPI_Request request;
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Bcast(large, LARGE, MPI_DOUBLE, root, MPI_COMM_WORLD);
    MPI_Reduce(small, sum, SMALL, MPI_DOUBLE, MPI_SUM, root, MPI_COMM_WORLD);
    if (rank == root) hash_bytes(sum, sizeof sum);
    MPI_Allreduce(small, sum, SMALL, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    MPI_Gather(small, SMALL, MPI_DOUBLE, all, SMALL, MPI_DOUBLE, root, MPI_COMM_WORLD);
    MPI_Scatter(all, SMALL, MPI_DOUBLE, small, SMALL, MPI_DOUBLE, root, MPI_COMM_WORLD);
    MPI_Allgather(small, SMALL, MPI_DOUBLE, all, SMALL, MPI_DOUBLE, MPI_COMM_WORLD);
    hash_bytes(all, sizeof(double) * SMALL * (size_t)size);
    MPI_Alltoall(all, 1, MPI_DOUBLE, sum, 1, MPI_DOUBLE, MPI_COMM_WORLD);
    hash_bytes(sum, sizeof(double) * (size_t)size);
    /* The order of additions matters in the first one, which is a non-blocking call below. */
    MPI_Scan(&small[1], &scanned, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    MPI_Scan(&step, &whole, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < size; ++i) counts[i] = 1;
    MPI_Reduce_scatter(all, &one, counts, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    hash_bytes(&scanned, sizeof scanned);
    hash_bytes(&whole, sizeof whole);
    hash_bytes(&one, sizeof one);
    MPI_Iallreduce(&small[2], &one, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request);
    while (!flag) MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
    hash_bytes(&one, sizeof one);
}

static void communicators(int step) {
    MPI_Comm part;
    int members, sum;
    MPI_Comm_split(MPI_COMM_WORLD, (rank + step) % 2, -rank, &part);
    MPI_Comm_size(part, &members);
    MPI_Allreduce(&members, &sum, 1, MPI_INT, MPI_SUM, part);
    hash_bytes(&sum, sizeof sum);
    MPI_Comm_free(&part);
}

int main(int argc, char** argv) {
    int steps = argc > 1 ? atoi(argv[1]) : 100, pause = argc > 2 ? atoi(argv[2]) : 1000;
    char name[64];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    snprintf(name, sizeof name, "written.%d", rank);
    int written = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    snprintf(name, sizeof name, "both.%d", rank);
    int both = argc > 3 && argv[3][0] == 'b' ? open(name, O_RDWR | O_CREAT | O_TRUNC, 0644) : -1;
    for (int i = 0; i < SMALL; ++i) small[i] = rank + 1.0 / (i + 1);
    for (int i = 0; i < LARGE; ++i) large[i] = rank * 1e-3 + i;
    for (int step = 0; step < steps; ++step) {
        char line[64];
        unsigned long long before = 0, all = 0;
        usleep((useconds_t)pause);
        for (int i = 0; i < SMALL; ++i)
            small[i] = 0.5 * small[i] + 0.25 * small[(i + 1) % SMALL] + 1e-3 * step;
        messages(step);
        collectives(step);
        if (step % 8 == 0) communicators(step);
        int length = snprintf(line, sizeof line, "rank %d step %06d %016llx\n", rank, step, hash_state);
        if (write(written, line, (size_t)length) != length) return 3;
        const int at = 8 * (step % 16), eight = sizeof before;
        if (both >= 0 && pread(both, &before, sizeof before, at) == eight) hash_bytes(&before, sizeof before);
        if (both >= 0 && pwrite(both, &hash_state, sizeof hash_state, at) != eight) return 3;
        MPI_Reduce(&hash_state, &all, 1, MPI_UNSIGNED_LONG_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
        if (rank == 0) {
            printf("step %d %016llx\n", step, all);
            fflush(stdout);
        }
        int over = rank == 0 && argc > 4 && access(argv[4], F_OK) == 0;
        MPI_Bcast(&over, 1, MPI_INT, 0, MPI_COMM_WORLD);
        if (over) break;
    }
    close(written);
    if (both >= 0) close(both);
    MPI_Finalize();
    return 0;
}
