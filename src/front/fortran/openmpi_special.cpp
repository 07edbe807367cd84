// What libmpi_mpifh.so.40 has beside the procedures: the attribute functions that programs pass as callbacks,
// and facts about communicators that the generated bodies ask for.
#include "front/fortran/openmpi_fortran.h"

namespace fermata::abi {

int peers(Comm comm) {
    int inter = 0, n = 0;
    if (fm_Comm_test_inter(comm, &inter) != FM_SUCCESS) return 0;
    return (inter != 0 ? fm_Comm_remote_size(comm, &n) : fm_Comm_size(comm, &n)) == FM_SUCCESS ? n : 0;
}
static void neighbours(Comm comm, int* in, int* out) {
    int topology = FM_UNDEFINED, a = 0, weighted = 0, rank = 0;
    *in = *out = 0;
    if (fm_Topo_test(comm, &topology) != FM_SUCCESS) return;
    if (topology == FM_CART && fm_Cartdim_get(comm, &a) == FM_SUCCESS)
        *in = *out = 2 * a;
    else if (topology == FM_GRAPH && fm_Comm_rank(comm, &rank) == FM_SUCCESS &&
             fm_Graph_neighbors_count(comm, rank, &a) == FM_SUCCESS)
        *in = *out = a;
    else if (topology == FM_DIST_GRAPH)
        fm_Dist_graph_neighbors_count(comm, in, out, &weighted);
}
int indegree(Comm comm) {
    int in, out;
    neighbours(comm, &in, &out);
    return in;
}
int outdegree(Comm comm) {
    int in, out;
    neighbours(comm, &in, &out);
    return out;
}
int cart_ndims(Comm comm) {
    int n = 0;
    return fm_Cartdim_get(comm, &n) == FM_SUCCESS ? n : 0;
}

int64_t attribute_value(int keyval, int64_t value) {
    const int v = static_cast<int>(value);
    switch (keyval) {
        case FM_IO:
        case FM_HOST:
            return out_rank(v);
        case FM_LASTUSEDCODE:
            return v <= FM_ERR_LASTCODE ? A_ERR_LASTCODE : v;
        case FM_WIN_CREATE_FLAVOR:
            return out_win_flavor(v);
        case FM_WIN_MODEL:
            return out_win_model(v);
        default:
            return value;
    }
}

void after_get_contents_words(Datatype type, int64_t limit, int* v) {
    int integers = 0, addresses = 0, types = 0, combiner = 0;
    if (fm_Type_get_envelope(type, &integers, &addresses, &types, &combiner) != FM_SUCCESS) return;
    if (integers > limit || integers < 4) return;
    if (combiner == FM_COMBINER_SUBARRAY || combiner == FM_COMBINER_DARRAY)
        v[integers - 1] = out_order(v[integers - 1]);
    if (combiner != FM_COMBINER_DARRAY) return;
    // size, rank, ndims, gsizes[ndims], distribs[ndims], dargs[ndims], psizes[ndims], order (MPI-4.0 5.1.13)
    const int n = v[2];
    if (n < 0 || 4 + 4 * static_cast<int64_t>(n) > limit) return;
    for (int i = 0; i < n; i++) {
        v[3 + n + i] = out_distrib(v[3 + n + i]);
        v[3 + 2 * n + i] = out_darg(v[3 + 2 * n + i]);
    }
}

}  // namespace fermata::abi

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
