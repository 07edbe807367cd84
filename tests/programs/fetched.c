/* A message so long that the receiver fetches it out of the sender's memory. Rank 1 sends it and waits
 * without MPI for the file GO; rank 0 takes it once the file FETCH is there, and prints what it was.
 *
 *   fetched FOLDER */
#include "hold.h"

enum { N = 1 << 18 };

static double data[N];

static void wait_for(const char* folder, const char* name) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    while (access(path, F_OK) != 0) usleep(5000);
}

int main(int argc, char** argv) {
    int rank;
    MPI_Request request;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    wait_for(argv[1], "BEGIN");
    for (int i = 0; i < 4; ++i) /* the library connects them */
        if (rank < 2)
            MPI_Sendrecv_replace(data, N, MPI_DOUBLE, 1 - rank, 0, 1 - rank, 0, MPI_COMM_WORLD,
                                 MPI_STATUS_IGNORE);
    if (rank == 1) {
        for (int i = 0; i < N; ++i) data[i] = i * 0.5;
        MPI_Isend(data, N, MPI_DOUBLE, 0, 1, MPI_COMM_WORLD, &request);
        /* At once: MPICH makes stdout unbuffered, and puts() writes the text and the end of the line apart.
         */
        if (write(1, "SENT\n", 5) != 5) return 5;
        wait_for(argv[1], "GO");
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else if (rank == 0) {
        wait_for(argv[1], "FETCH");
        MPI_Recv(data, N, MPI_DOUBLE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        hash_bytes(data, sizeof data);
        printf("fetched %016llx\n", hash_state);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
