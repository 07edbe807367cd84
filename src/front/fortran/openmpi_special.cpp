// What libmpi_mpifh.so.40 has beside the procedures: the attribute functions that programs pass as callbacks.
#include "front/fortran/openmpi_fortran.h"

namespace {

template <typename Word>
void null_copy(Word*, int* flag, int* ierror) {
    *flag = 0;
    *ierror = 0;
}
template <typename Word>
void dup(const Word* in, Word* out, int* flag, int* ierror) {
    *out = *in;
    *flag = 1;
    *ierror = 0;
}

}  // namespace

void mpi_null_copy_fn_(int*, int*, int*, int*, int* out, int* flag, int* ierror) {
    null_copy(out, flag, ierror);
}
void mpi_dup_fn_(int*, int*, int*, int* in, int* out, int* flag, int* ierror) { dup(in, out, flag, ierror); }
void mpi_null_delete_fn_(int*, int*, int*, int*, int* ierror) { *ierror = 0; }
#define ATTR_FUNCTIONS(kind)                                                                                \
    void mpi_##kind##_null_copy_fn_(int*, int*, int64_t*, int64_t*, int64_t* out, int* flag, int* ierror) { \
        null_copy(out, flag, ierror);                                                                       \
    }                                                                                                       \
    void mpi_##kind##_dup_fn_(int*, int*, int64_t*, int64_t* in, int64_t* out, int* flag, int* ierror) {    \
        dup(in, out, flag, ierror);                                                                         \
    }                                                                                                       \
    void mpi_##kind##_null_delete_fn_(int*, int*, int64_t*, int64_t*, int* ierror) { *ierror = 0; }
ATTR_FUNCTIONS(comm)
ATTR_FUNCTIONS(type)
ATTR_FUNCTIONS(win)

// Data representations are not converted by anybody's code but the library's.
FRONT_FORTRAN void mpi_conversion_fn_null_(void*, int*, int*, void*, int64_t*, int64_t*, int* ierror) {
    *ierror = 0;
}

// Tells the compiler that a buffer may have changed; a call is all it takes.
FRONT_FORTRAN void mpi_f_sync_reg_(void*) {}
#define SYNC_REG(name) FRONT_NAME(name, "mpi_f_sync_reg_")
asm(SYNC_REG("mpi_f_sync_reg") SYNC_REG("mpi_f_sync_reg__") SYNC_REG("pmpi_f_sync_reg")
        SYNC_REG("pmpi_f_sync_reg_") SYNC_REG("pmpi_f_sync_reg__") SYNC_REG("ompi_f_sync_reg_f"));
