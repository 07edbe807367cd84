/* Splits the world by the types named on the command line, TYPE[:KEY=VALUE], numbers as some mpi.h has them,
 * and says what came of each: how many are together, null, or an error; and by which resource, where the
 * library says so. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void split(char* word, int rank) {
    char said[64], value[256] = "";
    char *key = strchr(word, ':'), *equals = key ? strchr(key, '=') : NULL;
    int rc, size, found = 0;
    MPI_Info info = MPI_INFO_NULL;
    MPI_Comm comm = MPI_COMM_NULL;
    if (key) {
        MPI_Info_create(&info);
        if (equals) *equals = 0, MPI_Info_set(info, key + 1, equals + 1), *equals = '=';
    }
    rc = MPI_Comm_split_type(MPI_COMM_WORLD, atoi(word), rank, info, &comm);
    if (rc != MPI_SUCCESS)
        strcpy(said, "error");
    else if (comm == MPI_COMM_NULL)
        strcpy(said, "null");
    else
        MPI_Comm_size(comm, &size), sprintf(said, "%d", size), MPI_Comm_free(&comm);
    if (info != MPI_INFO_NULL)
        MPI_Info_get(info, "mpi_hw_resource_type", 255, value, &found), MPI_Info_free(&info);
    if (rank == 0) printf("%s -> %s%s%s\n", word, said, found ? ", by " : "", value);
}

int main(int argc, char** argv) {
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int i = 1; i < argc; ++i) split(argv[i], rank);
    MPI_Finalize();
    return 0;
}
