/* A program of the MPI-5.0 standard ABI, as `mpicc_abi` builds them: the few declarations that it needs are
 * the standard's, because no package of Debian 12 has its mpi.h. Says READY at half of its steps and waits
 * there when HOLD_FILE is set. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

typedef struct MPI_ABI_Comm* MPI_Comm;
typedef struct MPI_ABI_Datatype* MPI_Datatype;
typedef struct MPI_ABI_Op* MPI_Op;
typedef struct MPI_ABI_Request* MPI_Request;
typedef struct MPI_ABI_Errhandler* MPI_Errhandler;
typedef struct MPI_ABI_Info* MPI_Info;
typedef struct {
    int MPI_SOURCE, MPI_TAG, MPI_ERROR, MPI_internal[5];
} MPI_Status;
#define MPI_COMM_WORLD ((MPI_Comm)0x101)
#define MPI_COMM_SELF ((MPI_Comm)0x102)
#define MPI_ERRORS_RETURN ((MPI_Errhandler)0x143)
#define MPI_REQUEST_NULL ((MPI_Request)0x180)
#define MPI_SUM ((MPI_Op)0x21)
#define MPI_INT ((MPI_Datatype)0x209)
#define MPI_DOUBLE ((MPI_Datatype)0x214)
enum { MPI_ANY_SOURCE = -1, MPI_ANY_TAG = -2, MPI_ERR_RANK = 6, MPI_ERR_ABI = 62 };
int MPI_Init(int*, char***), MPI_Finalize(void), MPI_Comm_rank(MPI_Comm, int*), MPI_Comm_size(MPI_Comm, int*);
int MPI_Comm_split(MPI_Comm, int, int, MPI_Comm*), MPI_Comm_set_errhandler(MPI_Comm, MPI_Errhandler);
int MPI_Type_vector(int, int, int, MPI_Datatype, MPI_Datatype*), MPI_Type_commit(MPI_Datatype*);
int MPI_Irecv(void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*);
int MPI_Send(const void*, int, MPI_Datatype, int, int, MPI_Comm), MPI_Wait(MPI_Request*, MPI_Status*);
int MPI_Get_count(const MPI_Status*, MPI_Datatype, int*), MPI_Barrier(MPI_Comm);
int MPI_Allreduce(const void*, void*, int, MPI_Datatype, MPI_Op, MPI_Comm);
int MPI_Error_class(int, int*);
int MPI_Abi_get_version(int*, int*), MPI_Abi_get_info(MPI_Info*), MPI_Abi_get_fortran_info(MPI_Info*);
int MPI_Abi_set_fortran_info(MPI_Info), MPI_Abi_get_fortran_booleans(int, void*, void*, int*);
int MPI_Info_get_string(MPI_Info, const char*, int*, char*, int*), MPI_Info_free(MPI_Info*);

/* What such a program may ask of the ABI, whatever the library below. */
static int abi_is_wrong(void) {
    int major = -1, minor = -1, yes = -1, no = -1, set = -1, there = 0, length = 8, wrong = 0, class = 0;
    char text[8] = "";
    MPI_Info info;
    MPI_Abi_get_version(&major, &minor);
    wrong += major != 1 || minor != 0;
    MPI_Abi_get_info(&info);
    MPI_Info_get_string(info, "mpi_count_size", &length, text, &there);
    wrong += !there || text[0] != '8';
    MPI_Info_free(&info);
    MPI_Abi_get_fortran_info(&info);
    length = 8;
    MPI_Info_get_string(info, "mpi_integer_size", &length, text, &there);
    wrong += !there || text[0] != '4';
    length = 8;
    MPI_Info_get_string(info, "mpi_real8_supported", &length, text, &there);
    wrong += !there || text[0] != 't';
    MPI_Error_class(MPI_Abi_set_fortran_info(info), &class); /* too late */
    wrong += class != MPI_ERR_ABI;
    MPI_Info_free(&info);
    MPI_Abi_get_fortran_booleans(4, &yes, &no, &set);
    MPI_Error_class(MPI_Abi_get_fortran_booleans(3, text, text, &there), &class);
    return wrong + (yes != 1 || no != 0 || set != 1) + (class != MPI_ERR_ABI);
}

static void hold(int rank) {
    const char* path = getenv("HOLD_FILE");
    MPI_Barrier(MPI_COMM_WORLD);
    if (!path) return;
    if (rank == 0) printf("READY\n"), fflush(stdout);
    while (access(path, F_OK) != 0) usleep(5000);
}

int main(int argc, char** argv) {
    enum { STEPS = 100 };
    int rank, size, n, class, wrong = 0;
    long long sum = 0;
    MPI_Comm half;
    MPI_Datatype every;
    MPI_Request request;
    MPI_Status status;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
    MPI_Type_vector(3, 1, 2, MPI_INT, &every);
    MPI_Type_commit(&every);
    for (int step = 0; step < STEPS; ++step) {
        int out[6], in[6] = {0}, mine, all;
        for (int i = 0; i < 6; ++i) out[i] = 1000 * rank + 10 * step + i;
        MPI_Irecv(in, 1, every, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &request);
        MPI_Send(out, 1, every, (rank + 1) % size, step, MPI_COMM_WORLD);
        if (step == STEPS / 2) hold(rank); /* a request, a type and a communicator are alive */
        MPI_Wait(&request, &status);
        MPI_Get_count(&status, MPI_INT, &n);
        wrong += request != MPI_REQUEST_NULL || n != 3 || status.MPI_TAG != step;
        wrong += status.MPI_SOURCE != (rank + size - 1) % size || in[1] != 0 ||
                 in[4] != 1000 * status.MPI_SOURCE + 10 * step + 4;
        mine = in[2];
        MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_SUM, half);
        sum += all;
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Error_class(MPI_Send(&n, 1, MPI_INT, size, 0, MPI_COMM_WORLD), &class);
    wrong += class != MPI_ERR_RANK;
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    wrong += abi_is_wrong();
    double part = (double)sum + 1000000.0 * wrong, whole;
    MPI_Allreduce(&part, &whole, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) printf("sum %.0f\n", whole);
    MPI_Finalize();
    return 0;
}
