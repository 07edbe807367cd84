/* Preloaded: rank 0 hears seconds later than the others that all of them meet to be saved
 * (src/lower/meeting.h). In Fermata's lower half (above 2^45) only. */
#include <mpi.h>
#include <stdint.h>
#include <time.h>

static MPI_Request meeting;
static time_t until;

static time_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec;
}

static int upper_half(void) { return (uintptr_t)&upper_half < UINT64_C(1) << 45; }

int MPI_Iallreduce(const void* sendbuf, void* recvbuf, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                   MPI_Request* request) {
    int rank, rc = PMPI_Iallreduce(sendbuf, recvbuf, count, type, op, comm, request);
    PMPI_Comm_rank(comm, &rank);
    if (!upper_half() && rank == 0) {
        meeting = *request;
        until = now() + 5;
    }
    return rc;
}

int MPI_Test(MPI_Request* request, int* flag, MPI_Status* status) {
    if (until == 0 || *request != meeting) return PMPI_Test(request, flag, status);
    *flag = 0;
    if (now() < until) return MPI_SUCCESS;
    until = 0;
    return PMPI_Test(request, flag, status);
}
