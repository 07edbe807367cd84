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

}  // namespace fermata::lower
