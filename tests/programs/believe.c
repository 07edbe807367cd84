/* Results of a library that has lost a peer: a reduction in each step, and every fifth one a message that is
 * too long to go at once. All values are known before; each step that is right prints a line.
 *
 *   believe STEPS */
#include "hold.h"

enum { N = 20000, EVERY = 5 };

static double out[N], in[N];

static int right(int rank, int size, int step) {
    double mine = 1000.0 * step + rank + 1, sum = -1;
    MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    if (sum != 1000.0 * step * size + size * (size + 1) / 2) return 0;
    if (step % EVERY != 0) return 1;
    MPI_Request requests[2];
    int peer = (rank + size / 2) % size;
    for (int i = 0; i < N; ++i) out[i] = mine + i, in[i] = -1;
    MPI_Irecv(in, N, MPI_DOUBLE, peer, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(out, N, MPI_DOUBLE, (rank + size - size / 2) % size, 1, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < N; ++i)
        if (in[i] != 1000.0 * step + peer + 1 + i) return 0;
    return 1;
}

int main(int argc, char** argv) {
    int rank, size, steps = argc > 1 ? atoi(argv[1]) : 100;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int step = 0; step < steps; ++step) {
        int good = right(rank, size, step);
        if (rank == 0 || !good) {
            printf("step %d%s\n", step, good ? "" : " wrong");
            fflush(stdout);
        }
    }
    verdict("believe");
    MPI_Finalize();
    return 0;
}
