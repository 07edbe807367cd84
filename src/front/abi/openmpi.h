// The C ABI of Open MPI (libmpi.so.40, as seen in 4.1.4).
//
// Handles are pointers. Predefined ones are addresses of data symbols which we export with the real sizes
// (executables copy-relocate them) and whose first four bytes hold the internal value: one load translates.
// Dynamic ones are the internal word, whose bit 31 is set, as a negative number: no object's address.
#pragma once

#include "front/abi/common.h"

namespace fermata::abi {

using A_Word = uintptr_t;
using A_Comm = A_Word;
using A_Group = A_Word;
using A_Datatype = A_Word;
using A_Op = A_Word;
using A_Request = A_Word;
using A_Errhandler = A_Word;
using A_Info = A_Word;
using A_Message = A_Word;
using A_Win = A_Word;
using A_File = A_Word;
using A_Session = A_Word;

struct A_Status {
    int source;
    int tag;
    int error;
    int cancelled;
    size_t count;
};
static_assert(sizeof(A_Status) == 24);

inline constexpr int kAbiVersion = 3;
inline constexpr int kAbiSubversion = 1;
inline A_Status* const kStatusIgnore = nullptr;
inline constexpr mpi::Family kFamily = mpi::Family::openmpi;

// The beginning of the data behind a predefined handle's symbol.
struct Predefined {
    uint32_t word;          // the internal value
    front::Object* object;  // see objects.h
};
// Address of the symbol of a predefined handle; generated, indexed by the internal value.
extern "C" __attribute__((visibility("hidden"))) void* const fermata_openmpi_handles[1024];

// The address of a symbol: neither negative nor in the first page, where what a program leaves unset mostly
// is.
inline bool is_symbol(A_Word handle) { return __builtin_expect(static_cast<intptr_t>(handle) >= 4096, 1); }
inline uint32_t in_word(A_Word handle) {
    if (is_symbol(handle)) return reinterpret_cast<const Predefined*>(handle)->word;
    return static_cast<intptr_t>(handle) < 0 ? static_cast<uint32_t>(handle) : 0;
}
inline A_Word out_word(uint32_t word) {
    if (is_dynamic(word)) return static_cast<A_Word>(intptr_t{static_cast<int32_t>(word)});
    return reinterpret_cast<A_Word>(fermata_openmpi_handles[word & 1023]);
}
#define HANDLE(T)                                                             \
    inline T in_##T(A_##T handle) { return static_cast<T>(in_word(handle)); } \
    inline A_##T out_##T(T handle) { return out_word(static_cast<uint32_t>(handle)); }
HANDLE(Comm)
HANDLE(Group)
HANDLE(Datatype)
HANDLE(Op)
HANDLE(Request)
HANDLE(Errhandler)
HANDLE(Info)
HANDLE(Message)
HANDLE(Win)
HANDLE(File)
HANDLE(Session)
#undef HANDLE

inline const void* in_buf(const void* p) { return p; }
inline void* in_buf(void* p) { return p; }
inline const int* in_weights(const int* p) {
    if (p == reinterpret_cast<const int*>(2)) return FM_UNWEIGHTED;
    if (p == reinterpret_cast<const int*>(3)) return FM_WEIGHTS_EMPTY;
    return p;
}
inline int* in_weights(int* p) { return const_cast<int*>(in_weights(static_cast<const int*>(p))); }

}  // namespace fermata::abi

#include "openmpi_values.h"  // generated: in_rank, out_rank, in_errclass ...

namespace fermata::abi {

int c2f(uint32_t word);
uint32_t f2c(Kind kind, int fortran);

}  // namespace fermata::abi

#include "front/abi/openmpi_status.h"  // stands on all of the above

// MPI_COMM_NULL_COPY_FN and its kin are functions of the library here.
FRONT_API int OMPI_C_MPI_COMM_NULL_COPY_FN(uintptr_t, int, void*, void*, void*, int* flag);
FRONT_API int OMPI_C_MPI_COMM_DUP_FN(uintptr_t, int, void*, void* in, void* out, int* flag);
FRONT_API int OMPI_C_MPI_COMM_NULL_DELETE_FN(uintptr_t, int, void*, void*);
FRONT_API int OMPI_C_MPI_TYPE_NULL_COPY_FN(uintptr_t, int, void*, void*, void*, int* flag);
FRONT_API int OMPI_C_MPI_TYPE_DUP_FN(uintptr_t, int, void*, void* in, void* out, int* flag);
FRONT_API int OMPI_C_MPI_TYPE_NULL_DELETE_FN(uintptr_t, int, void*, void*);
FRONT_API int OMPI_C_MPI_WIN_NULL_COPY_FN(uintptr_t, int, void*, void*, void*, int* flag);
FRONT_API int OMPI_C_MPI_WIN_DUP_FN(uintptr_t, int, void*, void* in, void* out, int* flag);
FRONT_API int OMPI_C_MPI_WIN_NULL_DELETE_FN(uintptr_t, int, void*, void*);
FRONT_API int OMPI_C_MPI_NULL_COPY_FN(uintptr_t, int, void*, void*, void*, int* flag);
FRONT_API int OMPI_C_MPI_DUP_FN(uintptr_t, int, void*, void* in, void* out, int* flag);
FRONT_API int OMPI_C_MPI_NULL_DELETE_FN(uintptr_t, int, void*, void*);

namespace fermata::abi {

inline void* in_copy_fn(void* fn) {
    auto is = [fn](auto* special) { return fn == reinterpret_cast<void*>(special); };
    if (is(OMPI_C_MPI_COMM_NULL_COPY_FN) || is(OMPI_C_MPI_TYPE_NULL_COPY_FN) ||
        is(OMPI_C_MPI_WIN_NULL_COPY_FN) || is(OMPI_C_MPI_NULL_COPY_FN))
        return FM_NULL_COPY_FN;
    if (is(OMPI_C_MPI_COMM_DUP_FN) || is(OMPI_C_MPI_TYPE_DUP_FN) || is(OMPI_C_MPI_WIN_DUP_FN) ||
        is(OMPI_C_MPI_DUP_FN))
        return FM_DUP_FN;
    return fn;
}
inline void* in_delete_fn(void* fn) {
    auto is = [fn](auto* special) { return fn == reinterpret_cast<void*>(special); };
    if (is(OMPI_C_MPI_COMM_NULL_DELETE_FN) || is(OMPI_C_MPI_TYPE_NULL_DELETE_FN) ||
        is(OMPI_C_MPI_WIN_NULL_DELETE_FN) || is(OMPI_C_MPI_NULL_DELETE_FN))
        return FM_NULL_DELETE_FN;
    return fn;
}

}  // namespace fermata::abi
