/* Latency of single MPI calls, batch by batch in turns with other jobs (turn.h). Each line: name, bytes, time
 * per operation in ns.
 *   latency [BATCHES] */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "turn.h"

enum { PER_BATCH = 2000 };
static int rank, size, batches = 60;

static void measure(const char* name, int bytes, void (*operation)(void)) {
    for (int b = 0; b < batches; ++b) {
        turn_wait();
        for (int i = 0; i < PER_BATCH / 4; ++i) operation(); /* caches are cold after the others' turns */
        MPI_Barrier(MPI_COMM_WORLD);
        double start = MPI_Wtime();
        for (int i = 0; i < PER_BATCH; ++i) operation();
        double ns = (MPI_Wtime() - start) / PER_BATCH * 1e9;
        if (rank == 0) turn_say(name, bytes, ns);
    }
}

static char out[8], in[8];
static void ping_pong(void) {
    int other = rank ^ 1;
    if (other >= size) return;
    if (rank % 2 == 0) {
        MPI_Send(out, 8, MPI_BYTE, other, 1, MPI_COMM_WORLD);
        MPI_Recv(in, 8, MPI_BYTE, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
        MPI_Recv(in, 8, MPI_BYTE, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(out, 8, MPI_BYTE, other, 1, MPI_COMM_WORLD);
    }
}
static void isend_irecv_waitall(void) {
    MPI_Request requests[2];
    int right = (rank + 1) % size, left = (rank + size - 1) % size;
    MPI_Irecv(in, 8, MPI_BYTE, left, 2, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(out, 8, MPI_BYTE, right, 2, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}
static int four_in = 1, four_out;
static void allreduce(void) { MPI_Allreduce(&four_in, &four_out, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD); }
static void bcast(void) { MPI_Bcast(&four_in, 1, MPI_INT, 0, MPI_COMM_WORLD); }
static void barrier(void) { MPI_Barrier(MPI_COMM_WORLD); }
static void iallreduce(void) {
    MPI_Request request;
    MPI_Iallreduce(&four_in, &four_out, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}
static void iprobe(void) {
    int flag;
    MPI_Iprobe(MPI_ANY_SOURCE, 99, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE);
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc > 1) batches = atoi(argv[1]);
    measure("ping_pong", 8, ping_pong);
    measure("isend_irecv_waitall", 8, isend_irecv_waitall);
    measure("allreduce", 4, allreduce);
    measure("bcast", 4, bcast);
    measure("barrier", 0, barrier);
    measure("iallreduce", 4, iallreduce);
    measure("iprobe_self", 0, iprobe);
    MPI_Finalize();
    return 0;
}
