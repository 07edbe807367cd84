// Entries that MPICH's and Intel MPI's libmpi_abi have beside the standard and the functions of
// mpi/beyond.json.
#include "front/abi/standard.h"

// The front knows no GPU.
#define ANSWER(name, value)                        \
    FRONT_API int PMPIX_##name() { return value; } \
    FRONT_API int MPIX_##name() __attribute__((weak, alias("PMPIX_" #name)))
ANSWER(Query_cuda_support, 0);
ANSWER(Query_ze_support, 0);
