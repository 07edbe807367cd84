#include "lower/meeting.h"

#include <mpi.h>

#include "base/error.h"
#include "lower/binding/binding.h"
#include "lower/binding/library.h"

namespace fermata::lower {

Meeting::Meeting(uint64_t private_world, bool takes_part) : mine_(takes_part ? 1 : 0) {
    if (int code = binding_table().Iallreduce(&mine_, &all_, 1, real_Datatype(MPI_INT), real_Op(MPI_MIN),
                                              mpi::RealComm{private_world}, &request_))
        fail("MPI_Iallreduce failed (MPI error class {})", code);
}

bool Meeting::over() {
    int done = 0;
    return binding_table().Test(&request_, &done, nullptr) != 0 || done != 0;
}

int sum_of_all(uint64_t private_world, int mine) {
    int all = 0;
    if (int code = binding_table().Allreduce(&mine, &all, 1, real_Datatype(MPI_INT), real_Op(MPI_SUM),
                                             mpi::RealComm{private_world}))
        fail("MPI_Allreduce failed (MPI error class {})", code);
    return all;
}

}  // namespace fermata::lower
