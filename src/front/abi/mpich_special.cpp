// Entries that only MPICH's library has.
#include "front/abi/mpich.h"

using namespace fermata::abi;

// Sizes as in 4.0.2 (executables may copy-relocate them). libmpichfort sets the MPI_F_ and MPI_F08_ ones.
FRONT_API void* const MPI_T_PVAR_ALL_HANDLES;
extern "C" {
#define DATA __attribute__((visibility("default")))
static int unweighted, weights_empty;
int* const MPI_UNWEIGHTED = &unweighted;
int* const MPI_WEIGHTS_EMPTY = &weights_empty;
// mpi_f08 hands on what is in these.
DATA int* MPIR_C_MPI_UNWEIGHTED = &unweighted;
DATA int* MPIR_C_MPI_WEIGHTS_EMPTY = &weights_empty;
// Read by libmpichfort, beginning with 5.0.2: gfortran's values.
DATA int MPIR_fortran_true = 1;
DATA int MPIR_fortran_false = 0;
DATA int MPIR_F08_MPI_BOTTOM = 0;
DATA int MPIR_F08_MPI_IN_PLACE = 0;
DATA A_Status MPIR_F08_MPI_STATUS_IGNORE_OBJ = {};
DATA A_Status MPIR_F08_MPI_STATUSES_IGNORE_OBJ[1] = {};
DATA A_Status* MPI_F08_STATUS_IGNORE = &MPIR_F08_MPI_STATUS_IGNORE_OBJ;
DATA A_Status* MPI_F08_STATUSES_IGNORE = MPIR_F08_MPI_STATUSES_IGNORE_OBJ;
DATA int* MPI_F_STATUS_IGNORE = nullptr;
DATA int* MPI_F_STATUSES_IGNORE = nullptr;
void* const MPI_T_PVAR_ALL_HANDLES = reinterpret_cast<void*>(-1);
}

namespace fermata::abi {

// A Fortran integer is the C handle; here its internal word is wanted, and back.
int c2f(uint32_t word) { return word == static_cast<uint32_t>(FM_FILE_NULL) ? 0 : out_word(word); }
uint32_t f2c(Kind kind, int fortran) {
    switch (kind) {
        case Kind::comm:
            return word_of(in_Comm(fortran));
        case Kind::group:
            return word_of(in_Group(fortran));
        case Kind::datatype:
            return word_of(in_Datatype(fortran));
        case Kind::op:
            return word_of(in_Op(fortran));
        case Kind::request:
            return word_of(in_Request(fortran));
        case Kind::errhandler:
            return word_of(in_Errhandler(fortran));
        case Kind::info:
            return word_of(in_Info(fortran));
        case Kind::message:
            return word_of(in_Message(fortran));
        case Kind::win:
            return word_of(in_Win(fortran));
        case Kind::session:
            return word_of(in_Session(fortran));
        case Kind::file:
            return word_of(in_File(static_cast<uint32_t>(fortran)));
        default:
            return 0;
    }
}

}  // namespace fermata::abi

FRONT_API int MPIR_Dup_fn(int, int, void*, void* in, void* out, int* flag) {
    *static_cast<void**>(out) = in;
    *flag = 1;
    return 0;
}

// Extensions that return no error code; the others are in mpi/beyond.json.
#define ANSWER(name, value)                        \
    FRONT_API int PMPIX_##name() { return value; } \
    FRONT_API int MPIX_##name() __attribute__((weak, alias("PMPIX_" #name)))
ANSWER(Query_cuda_support, 0);
ANSWER(Query_hip_support, 0);
ANSWER(Query_ze_support, 0);

FRONT_API int PMPIX_Request_is_complete(A_Request request) {
    int complete = 0;
    return fm_Request_get_status(in_Request(request), &complete, nullptr) == FM_SUCCESS && complete != 0;
}
FRONT_API int MPIX_Request_is_complete(A_Request) __attribute__((weak, alias("PMPIX_Request_is_complete")));
