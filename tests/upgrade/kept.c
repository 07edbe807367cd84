// Stands still with MPI objects, messages and a window in hand while the file of its first argument is there
// (keep.py saves it then), and uses them all afterwards; every line follows from what it held.
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static void nap(void) { nanosleep(&(struct timespec){0, 20000000}, NULL); }

static void mix(void* in, void* inout, int* count, MPI_Datatype* type) {
    (void)type;
    for (int i = 0; i < *count; i++) ((uint64_t*)inout)[i] = ((uint64_t*)inout)[i] * 31 + ((uint64_t*)in)[i];
}

int main(int argc, char** argv) {
    int rank, size, sub;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm turned, ring;
    MPI_Comm_split(MPI_COMM_WORLD, 0, size - rank, &turned);
    MPI_Comm_rank(turned, &sub);
    MPI_Cart_create(MPI_COMM_WORLD, 1, &size, (int[]){1}, 0, &ring);
    MPI_Datatype every_other;
    MPI_Type_vector(4, 1, 2, MPI_UINT64_T, &every_other);
    MPI_Type_commit(&every_other);
    MPI_Op op;
    MPI_Op_create(mix, 0, &op);
    int from, to;
    MPI_Cart_shift(ring, 0, 1, &from, &to);
    uint64_t out[8], in[8] = {0}, cell[8] = {0}, sum;
    for (int i = 0; i < 8; i++) out[i] = (uint64_t)(rank * 100 + i);
    MPI_Win window;
    MPI_Win_create(cell, sizeof cell, sizeof *cell, MPI_INFO_NULL, turned, &window);
    // On its way, posted, and persistent while it is saved.
    MPI_Request sent, posted, again;
    uint64_t early = 7000 + rank, late = 0;
    MPI_Isend(&early, 1, MPI_UINT64_T, to, 5, ring, &sent);
    MPI_Irecv(&late, 1, MPI_UINT64_T, from, 6, ring, &posted);
    MPI_Recv_init(in, 1, every_other, from, 7, ring, &again);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) printf("READY\n"), fflush(stdout);
    while (argc > 1 && access(argv[1], F_OK) == 0) nap();

    for (uint64_t step = 0; step < 60; step++) {
        MPI_Start(&again);
        MPI_Send(out, 1, every_other, to, 7, ring);
        MPI_Wait(&again, MPI_STATUS_IGNORE);
        for (int i = 0; i < 8; i++) out[i] += in[i] * (step + 3);
        MPI_Win_fence(0, window);
        MPI_Put(out, 8, MPI_UINT64_T, (sub + 1) % size, 0, 8, MPI_UINT64_T, window);
        MPI_Win_fence(0, window);
        MPI_Allreduce(&cell[step % 8], &sum, 1, MPI_UINT64_T, op, turned);
        if (rank == 0) printf("step %d: %016llx\n", (int)step, (unsigned long long)sum), fflush(stdout);
        nap();
    }
    uint64_t old = 0;
    MPI_Recv(&old, 1, MPI_UINT64_T, from, 5, ring, MPI_STATUS_IGNORE);
    MPI_Send(&out[2], 1, MPI_UINT64_T, to, 6, ring);
    MPI_Wait(&posted, MPI_STATUS_IGNORE);
    MPI_Wait(&sent, MPI_STATUS_IGNORE);
    sum = old * 1000003 + late;
    uint64_t all = 0;
    MPI_Reduce(&sum, &all, 1, MPI_UINT64_T, MPI_SUM, 0, turned);
    if (sub == 0) printf("held: %016llx\n", (unsigned long long)all), fflush(stdout);
    MPI_Request_free(&again);
    MPI_Win_free(&window);
    MPI_Op_free(&op);
    MPI_Type_free(&every_other);
    MPI_Finalize();
    return 0;
}
