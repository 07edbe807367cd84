// The C ABI of MPICH (libmpich.so.12 of Debian, libmpi.so.12 upstream and Intel MPI; values as in 4.0.2).
//
// Handles are ints (MPI_File: a pointer). Predefined ones go through a perfect hash per kind, generated;
// dynamic ones are the internal word itself, whose index never is below 64, so that no pair type (0x8c00000x)
// is met.
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
using A_Session = int;
using A_File = uintptr_t;

struct A_Status {
    int count_lo;
    int count_hi_and_cancelled;
    int source;
    int tag;
    int error;
};
static_assert(sizeof(A_Status) == 20);

inline constexpr int kAbiVersion = 4;
inline constexpr int kAbiSubversion = 0;
inline A_Status* const kStatusIgnore = reinterpret_cast<A_Status*>(1);
inline constexpr mpi::Family kFamily = mpi::Family::mpich;

struct MapEntry {
    uint32_t abi;
    uint32_t std;
    front::Object* object;  // see objects.h
};
// The predefined handles of a kind. The hash maps them to places without collision.
template <uint32_t factor, int shift>
struct HandleMap {
    MapEntry* entries;  // [1 << (32 - shift)]
    MapEntry& entry(uint32_t word) const { return entries[word * factor >> shift]; }
};
template <Kind kind>
inline constexpr auto kMap = HandleMap<0, 31>{nullptr};
// Predefined handle of each internal value; generated.
extern "C" __attribute__((visibility("hidden"))) const uint32_t fermata_mpich_handles[1024];

template <Kind kind>
inline uint32_t in_word(uint32_t word) {
    const MapEntry& entry = kMap<kind>.entry(word);
    if (__builtin_expect(entry.abi == word, 1)) return entry.std;
    return word >> 31 != 0 ? word : 0;
}
inline int out_word(uint32_t word) {
    return static_cast<int>(word >> 31 != 0 ? word : fermata_mpich_handles[word & 1023]);
}

inline const void* in_buf(const void* p) {
    return __builtin_expect(p == reinterpret_cast<const void*>(-1), 0) ? FM_IN_PLACE : p;
}
inline void* in_buf(void* p) { return const_cast<void*>(in_buf(static_cast<const void*>(p))); }

}  // namespace fermata::abi

// Variables whose values mean something.
FRONT_API int* const MPI_UNWEIGHTED;
FRONT_API int* const MPI_WEIGHTS_EMPTY;
FRONT_API int MPIR_Dup_fn(int, int, void*, void* in, void* out, int* flag);

#include "mpich_values.h"  // generated: in_Comm, in_rank, out_rank, in_errclass ...

namespace fermata::abi {

inline File in_File(A_File handle) {
    return handle == 0 ? FM_FILE_NULL
                       : static_cast<File>(handle >> 31 == 1 ? static_cast<uint32_t>(handle) : 0);
}
inline A_File out_File(File handle) { return handle == FM_FILE_NULL ? 0 : static_cast<uint32_t>(handle); }

inline const int* in_weights(const int* p) {
    if (p == MPI_UNWEIGHTED) return FM_UNWEIGHTED;
    if (p == MPI_WEIGHTS_EMPTY) return FM_WEIGHTS_EMPTY;
    return p;
}
inline int* in_weights(int* p) { return const_cast<int*>(in_weights(static_cast<const int*>(p))); }
inline void in_status(Status* to, const A_Status* from) {
    to->source = in_rank(from->source);
    to->tag = in_tag(from->tag);
    to->error = in_errclass(from->error);
    to->cancelled = from->count_hi_and_cancelled & 1;
    to->count = static_cast<Count>(static_cast<uint32_t>(from->count_hi_and_cancelled) >> 1) << 32 |
                static_cast<uint32_t>(from->count_lo);
    to->spare = 0;
}
inline void out_status(A_Status* to, const Status& from) {
    if (from.source == FM_ANY_SOURCE) to->error = 0;  // the empty status is whole (MPI-4.0 3.7.3)
    to->source = out_rank(from.source);
    to->tag = out_tag(from.tag);
    to->count_lo = static_cast<int>(from.count & 0xffffffff);
    to->count_hi_and_cancelled = static_cast<int>(from.count >> 32 << 1) | (from.cancelled != 0);
}

// MPI_X_c2f are identities.
int c2f(uint32_t word);
uint32_t f2c(Kind kind, int fortran);

inline void* in_copy_fn(void* fn) { return fn == reinterpret_cast<void*>(MPIR_Dup_fn) ? FM_DUP_FN : fn; }
inline void* in_delete_fn(void* fn) { return fn; }

}  // namespace fermata::abi
