/* Splits the world by the types named on the command line, TYPE[:KEY=VALUE], numbers as some mpi.h has them,
 * and says what came of each: how many are together, null, or an error; and by which resource, where the
 * library says so. The infos are looked at once more behind the hold point, and used. */
#include "hold.h"

#define WORDS 16
static MPI_Info infos[WORDS];

static int by_what(MPI_Info info, char* value) {
    int found = 0;
    value[0] = 0;
    if (info != MPI_INFO_NULL) MPI_Info_get(info, "mpi_hw_resource_type", 255, value, &found);
    return found;
}

static MPI_Info split(char* word, int rank) {
    char said[64], value[256];
    char *key = strchr(word, ':'), *equals = key ? strchr(key, '=') : NULL;
    int rc, size, found;
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
    found = by_what(info, value);
    if (rank == 0) printf("%s -> %s%s%s\n", word, said, found ? ", by " : "", value);
    return info;
}

int main(int argc, char** argv) {
    char value[256];
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (argc > WORDS) return 1;
    for (int i = 1; i < argc; ++i) infos[i] = split(argv[i], rank);
    hold();
    for (int i = 1; i < argc; ++i) {
        if (by_what(infos[i], value) && rank == 0) printf("%s still by %s\n", argv[i], value);
        if (infos[i] != MPI_INFO_NULL) MPI_Info_free(&infos[i]);
    }
    MPI_Finalize();
    return 0;
}
