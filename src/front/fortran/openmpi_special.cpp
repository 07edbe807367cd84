// Entries that libmpi_mpifh.so.40 has beside the procedures: the attribute functions that programs pass as
// callbacks.
#include "front/fortran/openmpi_fortran.h"

using namespace fermata::abi;

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

// The functions above by the names of other compilers, and of Open MPI's own sources.
#define OTHER_NAMES(x, X) \
    asm(FRONT_NAME(x, x "_") FRONT_NAME(x "__", x "_") FRONT_NAME("o" x "_f", x "_") FRONT_NAME(X, x "_"))
OTHER_NAMES("mpi_null_copy_fn", "MPI_NULL_COPY_FN");
OTHER_NAMES("mpi_dup_fn", "MPI_DUP_FN");
OTHER_NAMES("mpi_null_delete_fn", "MPI_NULL_DELETE_FN");
OTHER_NAMES("mpi_comm_null_copy_fn", "MPI_COMM_NULL_COPY_FN");
OTHER_NAMES("mpi_comm_dup_fn", "MPI_COMM_DUP_FN");
OTHER_NAMES("mpi_comm_null_delete_fn", "MPI_COMM_NULL_DELETE_FN");
OTHER_NAMES("mpi_type_null_copy_fn", "MPI_TYPE_NULL_COPY_FN");
OTHER_NAMES("mpi_type_dup_fn", "MPI_TYPE_DUP_FN");
OTHER_NAMES("mpi_type_null_delete_fn", "MPI_TYPE_NULL_DELETE_FN");
OTHER_NAMES("mpi_win_null_copy_fn", "MPI_WIN_NULL_COPY_FN");
OTHER_NAMES("mpi_win_dup_fn", "MPI_WIN_DUP_FN");
OTHER_NAMES("mpi_win_null_delete_fn", "MPI_WIN_NULL_DELETE_FN");
OTHER_NAMES("mpi_conversion_fn_null", "MPI_CONVERSION_FN_NULL");
asm(FRONT_NAME("mpi_conversion_fn_null_f", "mpi_conversion_fn_null_"));

// Tells the compiler that a buffer may have changed; a call is all it takes.
FRONT_FORTRAN void mpi_f_sync_reg_(void*) {}
#define SYNC_REG(name) FRONT_NAME(name, "mpi_f_sync_reg_")
asm(SYNC_REG("mpi_f_sync_reg") SYNC_REG("mpi_f_sync_reg__") SYNC_REG("pmpi_f_sync_reg")
        SYNC_REG("pmpi_f_sync_reg_") SYNC_REG("pmpi_f_sync_reg__") SYNC_REG("ompi_f_sync_reg_f")
            SYNC_REG("MPI_F_SYNC_REG") SYNC_REG("PMPI_F_SYNC_REG") SYNC_REG("MPI_F_sync_reg_f")
                SYNC_REG("PMPI_F_sync_reg_f") SYNC_REG("MPI_F_sync_reg_f08") SYNC_REG("PMPI_F_sync_reg_f08"));

// Open MPI 5's mpi_f08 is linked with these three. A status of mpi_f08 is one of mpif.h.
FRONT_FORTRAN void pmpi_info_create_env_(int* info, int* ierror) {
    Info made{};
    int rc = fm_Info_create_env(0, nullptr, &made);
    if (rc == FM_SUCCESS) *info = out_Info(made);
    if (ierror != nullptr) *ierror = out_errclass(rc);
}
FRONT_NAMES("info_create_env", "INFO_CREATE_ENV")
FRONT_OPENMPI_NAMES("info_create_env", "Info_create_env")
FRONT_FORTRAN void pmpi_status_f082f_(const void* from, void* to, int* ierror) {
    memcpy(to, from, sizeof(A_Status));
    if (ierror != nullptr) *ierror = 0;
}
FRONT_NAMES("status_f082f", "STATUS_F082F")
FRONT_OPENMPI_NAMES("status_f082f", "Status_f082f")
FRONT_FORTRAN void pmpi_status_f2f08_(const void* from, void* to, int* ierror) {
    memcpy(to, from, sizeof(A_Status));
    if (ierror != nullptr) *ierror = 0;
}
FRONT_NAMES("status_f2f08", "STATUS_F2F08")
FRONT_OPENMPI_NAMES("status_f2f08", "Status_f2f08")
