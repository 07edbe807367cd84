/* Preloaded: a library that cancels sends, as MPICH's ch3 devices do and none of Debian's does. A send of an
 * int with the bit PHANTOM never leaves; MPI_Cancel ends it as cancelled. In Fermata's lower half (above
 * 2^45) only, or natively. */
#include <mpi.h>
#include <stdint.h>
#include <stdlib.h>

enum { PHANTOM = 1 << 20, MANY = 64 };
static MPI_Request phantoms[MANY];

static int query(void* extra, MPI_Status* status) {
    (void)extra;
    MPI_Status_set_elements(status, MPI_INT, 0);
    MPI_Status_set_cancelled(status, 1);
    return MPI_SUCCESS;
}
static int nothing(void* extra) { return (void)extra, MPI_SUCCESS; }
static int cancel(void* extra, int complete) { return (void)extra, (void)complete, MPI_SUCCESS; }

static int upper_half(void) { return (uintptr_t)&upper_half < UINT64_C(1) << 45; }

int MPI_Isend(const void* buf, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm,
              MPI_Request* request) {
    if (upper_half() || count != 1 || type != MPI_INT || (*(const int*)buf & PHANTOM) == 0)
        return PMPI_Isend(buf, count, type, dest, tag, comm, request);
    PMPI_Grequest_start(query, nothing, cancel, NULL, request);
    for (int i = 0; i < MANY; ++i)
        if (phantoms[i] == 0 || phantoms[i] == MPI_REQUEST_NULL) {
            phantoms[i] = *request;
            return MPI_SUCCESS;
        }
    abort();
}

int MPI_Cancel(MPI_Request* request) {
    for (int i = 0; i < MANY && !upper_half(); ++i)
        if (phantoms[i] == *request) {
            phantoms[i] = MPI_REQUEST_NULL;
            return PMPI_Grequest_complete(*request);
        }
    return PMPI_Cancel(request);
}
