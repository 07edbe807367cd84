#include "lower/binding/spent_receive.h"

#include "lower/binding/library.h"

namespace fermata::lower {

mpi::RealRequest spent_receive;

int end_spent_receive() {
    MPI_Request request = lib(spent_receive);
    spent_receive = {};
    if (request == MPI_REQUEST_NULL) return MPI_SUCCESS;
    int done = 0;
    const int rc = test_another(&request, &done, MPI_STATUS_IGNORE);
    return rc == MPI_SUCCESS && done == 0 ? MPI_ERR_INTERN : rc;
}

bool sees_truncation_early() {
    constexpr int kLooks = 100000;
    char out[2] = {}, in[1];
    MPI_Request send, receive;
    if (MPI_Isend(out, 2, MPI_BYTE, 0, 0, MPI_COMM_SELF, &send) != MPI_SUCCESS) return false;
    if (MPI_Irecv(in, 1, MPI_BYTE, 0, 0, MPI_COMM_SELF, &receive) != MPI_SUCCESS) return false;
    MPI_Status status{};
    int there = 0, rc = MPI_SUCCESS;
    for (int looks = kLooks; looks > 0 && there == 0 && rc == MPI_SUCCESS; --looks)
        rc = MPI_Request_get_status(receive, &there, &status);
    bool seen = rc != MPI_SUCCESS;
#if defined(OPEN_MPI)
    seen = seen || (there != 0 && status._ucount > sizeof in);
#endif
    MPI_Wait(&receive, MPI_STATUS_IGNORE);
    MPI_Wait(&send, MPI_STATUS_IGNORE);
    return seen;
}

}  // namespace fermata::lower
