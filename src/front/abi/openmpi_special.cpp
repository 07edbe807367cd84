// Entries that only Open MPI's libmpi has: null and dup functions of attributes, and internals which its C++
// bindings use.
#include "front/abi/openmpi.h"

using namespace fermata::abi;

static int null_copy(int* flag) {
    *flag = 0;
    return 0;
}
static int dup(void* in, void* out, int* flag) {
    *static_cast<void**>(out) = in;
    *flag = 1;
    return 0;
}
#define FUNCTIONS(prefix)                                                                              \
    FRONT_API int OMPI_C_MPI_##prefix##NULL_COPY_FN(uintptr_t, int, void*, void*, void*, int* flag) {  \
        return null_copy(flag);                                                                        \
    }                                                                                                  \
    FRONT_API int OMPI_C_MPI_##prefix##DUP_FN(uintptr_t, int, void*, void* in, void* out, int* flag) { \
        return dup(in, out, flag);                                                                     \
    }                                                                                                  \
    FRONT_API int OMPI_C_MPI_##prefix##NULL_DELETE_FN(uintptr_t, int, void*, void*) { return 0; }
FUNCTIONS(COMM_)
FUNCTIONS(TYPE_)
FUNCTIONS(WIN_)
FUNCTIONS()

// libmpi_cxx.so.40 (4.1.4) calls these to create handlers, keyvals and ops of the C++ bindings (removed in
// MPI-3). They exist so that the library loads; programs that use such callbacks get the error at the call.
FRONT_API int ompi_attr_create_keyval(int, void*, void*, int*, void*, int, void*) {
    return out_errclass(FM_ERR_UNSUPPORTED_OPERATION);
}
FRONT_API void* ompi_errhandler_create(int, void*, int) { return nullptr; }
FRONT_API int ompi_errhandler_invoke(void*, void*, int, int code, const char*) { return code; }

// Those of ops work: the function that made the op calls the program's, which comes after it.
namespace {
using CxxIntercept = void (*)(void* in, void* inout, int* len, A_Datatype* type, void* function);
CxxIntercept cxx_intercept;
void call_cxx(void* fn, void* in, void* inout, Count* len, Datatype* type) {
    int n = static_cast<int>(*len);
    A_Datatype t = out_Datatype(*type);
    cxx_intercept(in, inout, &n, &t, fn);
}
}  // namespace
FRONT_API void ompi_op_set_cxx_callback(A_Op op, void* function) {
    if (void* had = fm_op_calls(in_Op(op), call_cxx, function))
        cxx_intercept = reinterpret_cast<CxxIntercept>(had);
}

// Fortran's STATUS_IGNORE as C sees it: the address of the common block's twin. Those of mpi_f08: Open MPI 5.
FRONT_API char mpi_fortran_status_ignore_[8];
FRONT_API char mpi_fortran_statuses_ignore_[8];
FRONT_API int* MPI_F_STATUS_IGNORE;
FRONT_API int* MPI_F_STATUSES_IGNORE;
int* MPI_F_STATUS_IGNORE = reinterpret_cast<int*>(mpi_fortran_status_ignore_);
int* MPI_F_STATUSES_IGNORE = reinterpret_cast<int*>(mpi_fortran_statuses_ignore_);
FRONT_API int* MPI_F08_STATUS_IGNORE;
FRONT_API int* MPI_F08_STATUSES_IGNORE;
int* MPI_F08_STATUS_IGNORE = reinterpret_cast<int*>(mpi_fortran_status_ignore_);
int* MPI_F08_STATUSES_IGNORE = reinterpret_cast<int*>(mpi_fortran_statuses_ignore_);

// The front knows no GPU.
FRONT_API int MPIX_Query_cuda_support() { return 0; }
FRONT_API int MPIX_Query_rocm_support() { return 0; }

// Functions that Open MPI 5's Java bindings call for their own ops: the C++ way, see above.
FRONT_API void ompi_op_set_java_callback(void*, void*, void*, int) {}
FRONT_API int ompi_mpi_errcode_init() { return 0; }
