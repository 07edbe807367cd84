// Functions of the C fronts that no rule of tools/fmgen/front_c.py covers. Compiled once per ABI.
#include FERMATA_ABI_HEADER
#include "front/abi/special.h"

#include "front/abi/adapters.h"

// Whose programs this front stands for: the lower half's name of that library (Bridge::mpi_library).
FRONT_API const char fermata_abi_name[] = FERMATA_ABI_NAME;

namespace fermata::abi {

void after_get_attr(int keyval, void* value, const int* flag) {
    if (*flag == 0) return;
    // One place per value, so that two attributes can be held at once; written with the same value again and
    // again.
    static int io, host, last, flavors[8], models[4];
    int** result = static_cast<int**>(value);
    switch (in_keyval(keyval)) {
        case FM_IO:
            io = out_rank(**result), *result = &io;
            break;
        case FM_HOST:
            host = out_rank(**result), *result = &host;
            break;
        case FM_LASTUSEDCODE:
            last = out_errclass(**result), *result = &last;
            break;
        case FM_WIN_CREATE_FLAVOR: {
            int* place = &flavors[**result & 7];
            *place = out_win_flavor(**result);
            *result = place;
            break;
        }
        case FM_WIN_MODEL: {
            int* place = &models[**result & 3];
            *place = out_win_model(**result);
            *result = place;
            break;
        }
        default:
            break;
    }
}

}  // namespace fermata::abi

using namespace fermata::abi;

FRONT_API int PMPI_Pcontrol(const int level, ...) { return fm_Pcontrol(level); }
ALIAS(int, Pcontrol, const int, ...);

FRONT_API int PMPI_Abort(A_Comm comm, int code) { return out_errclass(fm_Abort(in_Comm(comm), code)); }
ALIAS(int, Abort, A_Comm, int);

FRONT_API int PMPI_Get_version(int* version, int* subversion) {
    NEEDS(version, "MPI_Get_version");
    NEEDS(subversion, "MPI_Get_version");
    *version = kAbiVersion;
    *subversion = kAbiSubversion;
    return 0;
}
ALIAS(int, Get_version, int*, int*);

// ---- variables of the tools interface: an object of a kind that the variable names
namespace {
uint32_t bound_word(int bind, const void* object) {
    if (object == nullptr) return 0;
    switch (bind) {
        case FM_T_BIND_MPI_COMM:
            return word_of(in_Comm(*static_cast<const A_Comm*>(object)));
        case FM_T_BIND_MPI_DATATYPE:
            return word_of(in_Datatype(*static_cast<const A_Datatype*>(object)));
        case FM_T_BIND_MPI_FILE:
            return word_of(in_File(*static_cast<const A_File*>(object)));
        case FM_T_BIND_MPI_OP:
            return word_of(in_Op(*static_cast<const A_Op*>(object)));
        case FM_T_BIND_MPI_WIN:
            return word_of(in_Win(*static_cast<const A_Win*>(object)));
        default:
            return 0;
    }
}
}  // namespace

FRONT_API int PMPI_T_cvar_handle_alloc(int index, void* object, void** handle, int* count) {
    uint32_t word = bound_word(fm_T_bind(false, index), object);
    uint64_t made = 0;
    int rc = fm_T_cvar_handle_alloc(index, &word, &made, count);
    if (rc == FM_SUCCESS && handle != nullptr) *handle = reinterpret_cast<void*>(made);
    return out_errclass(rc);
}
ALIAS(int, T_cvar_handle_alloc, int, void*, void**, int*);

FRONT_API int PMPI_T_pvar_handle_alloc(void* session, int index, void* object, void** handle, int* count) {
    uint32_t word = bound_word(fm_T_bind(true, index), object);
    uint64_t made = 0;
    int rc = fm_T_pvar_handle_alloc(reinterpret_cast<uint64_t>(session), index, &word, &made, count);
    if (rc == FM_SUCCESS && handle != nullptr) *handle = reinterpret_cast<void*>(made);
    return out_errclass(rc);
}
ALIAS(int, T_pvar_handle_alloc, void*, int, void*, void**, int*);

FRONT_API int PMPI_Type_extent(A_Datatype type, int64_t* extent) {
    NEEDS(extent, "MPI_Type_extent");
    Count lb;
    return out_errclass(fm_Type_get_extent(in_Datatype(type), &lb, extent));
}
ALIAS(int, Type_extent, A_Datatype, int64_t*);
FRONT_API int PMPI_Type_lb(A_Datatype type, int64_t* lb) {
    NEEDS(lb, "MPI_Type_lb");
    Count extent;
    return out_errclass(fm_Type_get_extent(in_Datatype(type), lb, &extent));
}
ALIAS(int, Type_lb, A_Datatype, int64_t*);
FRONT_API int PMPI_Type_ub(A_Datatype type, int64_t* ub) {
    NEEDS(ub, "MPI_Type_ub");
    Count lb = 0, extent = 0;
    int rc = fm_Type_get_extent(in_Datatype(type), &lb, &extent);
    if (rc == FM_SUCCESS) *ub = lb + extent;
    return out_errclass(rc);
}
ALIAS(int, Type_ub, A_Datatype, int64_t*);

// A Fortran status is the C one as an array of INTEGERs, in both libraries, for mpif.h and mpi_f08 alike.
static int copy_status(void* to, const void* from) {
    memcpy(to, from, sizeof(A_Status));
    return 0;
}
FRONT_API int PMPI_Status_c2f(const A_Status* from, int* to) { return copy_status(to, from); }
FRONT_API int PMPI_Status_f2c(const int* from, A_Status* to) { return copy_status(to, from); }
FRONT_API int PMPI_Status_c2f08(const A_Status* from, void* to) { return copy_status(to, from); }
FRONT_API int PMPI_Status_f082c(const void* from, A_Status* to) { return copy_status(to, from); }
FRONT_API int PMPI_Status_f082f(const void* from, int* to) { return copy_status(to, from); }
FRONT_API int PMPI_Status_f2f08(const int* from, void* to) { return copy_status(to, from); }
ALIAS(int, Status_c2f, const A_Status*, int*);
ALIAS(int, Status_f2c, const int*, A_Status*);
ALIAS(int, Status_c2f08, const A_Status*, void*);
ALIAS(int, Status_f082c, const void*, A_Status*);
ALIAS(int, Status_f082f, const void*, int*);
ALIAS(int, Status_f2f08, const int*, void*);

FRONT_API int PMPI_Info_create_env(int argc, char** argv, A_Info* info) {
    NEEDS(info, "MPI_Info_create_env");
    Info made{};
    int rc = fm_Info_create_env(argc, argv, &made);
    if (rc == FM_SUCCESS) *info = out_Info(made);
    return out_errclass(rc);
}
ALIAS(int, Info_create_env, int, char**, A_Info*);
