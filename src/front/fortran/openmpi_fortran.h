// Open MPI's Fortran ABI (libmpi_mpifh.so.40, as seen in 4.1.4), with the names that the front generators
// expect of an ABI (see front/abi/common.h).
//
// Handles are INTEGERs: predefined ones small numbers, each kind counting from 0; dynamic ones the internal
// word itself, which is negative and so never meets them. Named constants are those of the C ABI. A status is
// the C one as six INTEGERs. MPI_BOTTOM and its kin are common blocks, known by their address: executables
// define them too, so only the GOT knows which one counts.
#pragma once

#include "front/abi/common.h"

namespace fermata::abi {

using A_Comm = int;
using A_Group = int;
using A_Datatype = int;
using A_Op = int;
using A_Request = int;
using A_Errhandler = int;
using A_Info = int;
using A_Message = int;
using A_Win = int;
using A_File = int;
using A_Session = int;

// INTEGER alignment only.
struct __attribute__((packed, aligned(4))) A_Status {
    int source;
    int tag;
    int error;
    int cancelled;
    uint64_t count;
};
static_assert(sizeof(A_Status) == 24);

inline constexpr int kAbiVersion = 3;
inline constexpr int kAbiSubversion = 1;
inline A_Status* const kStatusIgnore = nullptr;  // after fstatus()

inline uint32_t in_fint(int handle, const short* map, int size) {
    if (handle < 0) return static_cast<uint32_t>(handle);
    return handle < size ? static_cast<uint32_t>(map[handle]) : 0;
}
inline int out_fint(uint32_t word, const short* fortran_of) {
    return word >> 31 != 0 ? static_cast<int>(word) : fortran_of[word & 1023];
}

// Already translated by fbuf() and fweights().
inline const void* in_buf(const void* p) { return p; }
inline void* in_buf(void* p) { return p; }
inline const int* in_weights(const int* p) { return p; }
inline int* in_weights(int* p) { return p; }

}  // namespace fermata::abi

#include "openmpi_fortran_handles.h"  // generated: in_Comm, out_Comm ...
#include "openmpi_values.h"           // generated: in_rank, out_rank, in_errclass ...

// In libmpi.so.40.
#define FRONT_COMMON extern "C" __attribute__((visibility("default")))
FRONT_COMMON int mpi_fortran_bottom_;
FRONT_COMMON int mpi_fortran_in_place_;
FRONT_COMMON int mpi_fortran_unweighted_;
FRONT_COMMON int mpi_fortran_weights_empty_;
FRONT_COMMON int mpi_fortran_errcodes_ignore_;
FRONT_COMMON char mpi_fortran_argv_null_[1];
FRONT_COMMON char mpi_fortran_argvs_null_[1];
FRONT_COMMON char mpi_fortran_status_ignore_[8];
FRONT_COMMON char mpi_fortran_statuses_ignore_[8];

namespace fermata::abi {

inline void* fbuf(const void* p) {
    if (__builtin_expect(p == &mpi_fortran_bottom_, 0)) return nullptr;
    if (__builtin_expect(p == &mpi_fortran_in_place_, 0)) return FM_IN_PLACE;
    return const_cast<void*>(p);
}
inline A_Status* fstatus(const void* p) {
    if (p == mpi_fortran_status_ignore_ || p == mpi_fortran_statuses_ignore_) return nullptr;
    return static_cast<A_Status*>(const_cast<void*>(p));
}
inline int* fweights(const int* p) {
    if (p == &mpi_fortran_unweighted_) return FM_UNWEIGHTED;
    if (p == &mpi_fortran_weights_empty_) return FM_WEIGHTS_EMPTY;
    return const_cast<int*>(p);
}
inline const char* fargv(const char* p) {
    return p == mpi_fortran_argv_null_ || p == mpi_fortran_argvs_null_ ? nullptr : p;
}
inline int* ferrcodes(int* p) { return p == &mpi_fortran_errcodes_ignore_ ? nullptr : p; }

}  // namespace fermata::abi

#include "front/abi/openmpi_status.h"  // stands on all of the above

// Attribute functions of the library, as Fortran names them: any of them may be passed as a callback.
#define FRONT_FORTRAN extern "C" __attribute__((visibility("default")))
FRONT_FORTRAN void mpi_null_copy_fn_(int*, int*, int*, int*, int*, int*, int*);
FRONT_FORTRAN void mpi_dup_fn_(int*, int*, int*, int*, int*, int*, int*);
FRONT_FORTRAN void mpi_null_delete_fn_(int*, int*, int*, int*, int*);
#define FRONT_ATTR_FUNCTIONS(kind)                                                                       \
    FRONT_FORTRAN void mpi_##kind##_null_copy_fn_(int*, int*, int64_t*, int64_t*, int64_t*, int*, int*); \
    FRONT_FORTRAN void mpi_##kind##_dup_fn_(int*, int*, int64_t*, int64_t*, int64_t*, int*, int*);       \
    FRONT_FORTRAN void mpi_##kind##_null_delete_fn_(int*, int*, int64_t*, int64_t*, int*);
FRONT_ATTR_FUNCTIONS(comm)
FRONT_ATTR_FUNCTIONS(type)
FRONT_ATTR_FUNCTIONS(win)
#undef FRONT_ATTR_FUNCTIONS

namespace fermata::abi {

inline void* in_copy_fn(void* fn) {
    auto is = [fn](auto* special) { return fn == reinterpret_cast<void*>(special); };
    if (is(mpi_null_copy_fn_) || is(mpi_comm_null_copy_fn_) || is(mpi_type_null_copy_fn_) ||
        is(mpi_win_null_copy_fn_))
        return FM_NULL_COPY_FN;
    if (is(mpi_dup_fn_) || is(mpi_comm_dup_fn_) || is(mpi_type_dup_fn_) || is(mpi_win_dup_fn_))
        return FM_DUP_FN;
    return fn;
}
inline void* in_delete_fn(void* fn) {
    auto is = [fn](auto* special) { return fn == reinterpret_cast<void*>(special); };
    if (is(mpi_null_delete_fn_) || is(mpi_comm_null_delete_fn_) || is(mpi_type_null_delete_fn_) ||
        is(mpi_win_null_delete_fn_))
        return FM_NULL_DELETE_FN;
    return fn;
}

}  // namespace fermata::abi

#include "front/fortran/fortran.h"  // stands on all of the above
