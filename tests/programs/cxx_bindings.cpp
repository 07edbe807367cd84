/* Callbacks of the C++ bindings, used on either side of a checkpoint: an operation, and on MPICH an error
 * handler.
 */
#include <mpi.h>

extern "C" {
#include "hold.h"
}

static void most(const void* in, void* inout, int n, const MPI::Datatype& type) {
    int* to = static_cast<int*>(inout);
    const int* from = static_cast<const int*>(in);
    for (int i = 0; i < n && type == MPI::INT; ++i) to[i] = from[i] > to[i] ? from[i] : to[i];
}

#ifndef OPEN_MPI
static int heard, size_there;
static void hear(MPI::Comm& comm, int* code, ...) {
    heard = MPI::Get_error_class(*code);
    size_there = comm.Get_size();
}
#endif

static void use(MPI::Intracomm& comm, const MPI::Op& op) {
    int mine[2] = {comm.Get_rank(), 10 - comm.Get_rank()}, all[2] = {};
    comm.Allreduce(mine, all, 2, MPI::INT, op);
    CHECK(all[0] == comm.Get_size() - 1 && all[1] == 10);
#ifndef OPEN_MPI
    heard = size_there = 0;
    MPI_Send(mine, 1, MPI_INT, 99, 0, comm);
    CHECK(heard == MPI::ERR_RANK && size_there == comm.Get_size());
#endif
    hash_bytes(all, sizeof all);
}

int main(int argc, char** argv) {
    MPI::Init(argc, argv);
    MPI::Op op;
    op.Init(most, true);
    MPI::Intracomm comm = MPI::COMM_WORLD.Dup();
#ifndef OPEN_MPI
    MPI::Errhandler handler = MPI::Comm::Create_errhandler(hear);
    comm.Set_errhandler(handler);
#endif
    use(comm, op);
    hold();
    use(comm, op);
    verdict("cxx_bindings");
    MPI::Finalize();
}
