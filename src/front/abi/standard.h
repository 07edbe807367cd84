// The standard ABI of MPI-5.0 (libmpi_abi.so.1): the internal values themselves, handles as pointer-sized
// words.
#pragma once

#include "front/abi/common.h"

namespace fermata::abi {

using A_Word = uintptr_t;
struct A_Status {  // MPI-5.0 20.3.1: three public fields, five ints of the implementation
    int source;
    int tag;
    int error;
    int cancelled;
    Count count;
    Count spare;
};
static_assert(sizeof(A_Status) == 32);

inline constexpr int kAbiVersion = 5;
inline constexpr int kAbiSubversion = 0;
inline A_Status* const kStatusIgnore = nullptr;
inline constexpr mpi::Family kFamily = mpi::Family::none;

// Nothing above 32 bits is a handle of ours.
inline uint32_t in_word(A_Word handle) { return handle >> 32 == 0 ? static_cast<uint32_t>(handle) : 0; }
#define HANDLE(T)                                                             \
    using A_##T = A_Word;                                                     \
    inline T in_##T(A_##T handle) { return static_cast<T>(in_word(handle)); } \
    inline A_##T out_##T(T handle) { return static_cast<uint32_t>(handle); }
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
inline const int* in_weights(const int* p) { return p; }
inline int* in_weights(int* p) { return p; }

}  // namespace fermata::abi

#include "standard_values.h"  // generated

namespace fermata::abi {

inline void in_status(Status* to, const A_Status* from) { memcpy(static_cast<void*>(to), from, sizeof *to); }
inline void out_status(A_Status* to, const Status& from) {
    if (from.source == FM_ANY_SOURCE) to->error = 0;  // the empty status is whole (MPI-4.0 3.7.3)
    to->source = from.source;
    to->tag = from.tag;
    to->cancelled = from.cancelled;
    to->count = from.count;
    to->spare = from.spare;
}

// MPI_X_toint: a Fortran integer is the handle's word.
inline int c2f(uint32_t word) { return static_cast<int>(word); }
inline uint32_t f2c(Kind, int fortran) { return static_cast<uint32_t>(fortran); }

inline void* in_copy_fn(void* fn) { return fn; }
inline void* in_delete_fn(void* fn) { return fn; }

}  // namespace fermata::abi
