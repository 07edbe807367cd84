/* Holds objects of MPI of each kind, in numbers that inspect_test.py knows, and waits for the file `go`. Two
 * ranks. */
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>

static int keep(MPI_Comm comm, int key, void* state, void* in, void* out, int* flag) {
    *(void**)out = in;
    *flag = 1;
    return MPI_SUCCESS;
}
static void plus(void* a, void* b, int* n, MPI_Datatype* type) {}

int main(int argc, char** argv) {
    int rank, sums[2] = {0, 0};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int peer = 1 - rank;

    MPI_Comm alpha, half, grid, across;
    MPI_Comm_dup(MPI_COMM_WORLD, &alpha);
    MPI_Comm_set_name(alpha, "alpha");
    MPI_Comm_split(MPI_COMM_WORLD, rank, 0, &half);
    int dims[1] = {2}, periods[1] = {1};
    MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, 0, &grid);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, peer, 5, &across);
    int key;
    MPI_Comm_create_keyval(keep, MPI_COMM_NULL_DELETE_FN, &key, NULL);
    MPI_Comm_set_attr(alpha, key, &rank);

    MPI_Group world, one;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, 1, &peer, &one);

    MPI_Datatype column, row;
    MPI_Type_vector(10, 1, 10, MPI_DOUBLE, &column);
    MPI_Type_set_name(column, "column");
    MPI_Type_commit(&column);
    MPI_Type_contiguous(3, column, &row);
    MPI_Op op;
    MPI_Op_create(plus, 1, &op);
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "a", "b");

    MPI_Win win;
    char* memory;
    MPI_Win_allocate(256, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    MPI_File file;
    MPI_File_open(MPI_COMM_WORLD, "data", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);

    MPI_Request receive, again;
    char held[40] = {0};
    MPI_Irecv(&sums[0], 1, MPI_INT, peer, 77, MPI_COMM_WORLD, &receive);
    MPI_Recv_init(&sums[1], 1, MPI_INT, MPI_ANY_SOURCE, 78, alpha, &again);
    MPI_Send(held, 40, MPI_CHAR, peer, 99, alpha);

    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) printf("ready\n"), fflush(stdout);
    while (access("go", F_OK) != 0) usleep(10000);

    MPI_Send(&rank, 1, MPI_INT, peer, 77, MPI_COMM_WORLD);
    MPI_Wait(&receive, MPI_STATUS_IGNORE);
    MPI_Recv(held, 40, MPI_CHAR, peer, 99, alpha, MPI_STATUS_IGNORE);
    MPI_Request_free(&again);
    MPI_File_close(&file);
    MPI_Win_free(&win);
    if (rank == 0) printf("%s\n", sums[0] == peer ? "right" : "wrong"), fflush(stdout);
    MPI_Finalize();
    return 0;
}
