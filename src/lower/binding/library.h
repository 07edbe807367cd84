// Real handles, statuses and errors of the library whose mpi.h this is compiled against.
//
// MPICH's handles are ints, Open MPI's are pointers; both travel as 64-bit words. Word 0 stands for the null
// handle of its kind in both directions, so that upper code compares with 0 and never needs the library's
// value. Kinds have functions of their own because libraries share values between kinds (MPICH:
// MPI_MESSAGE_NULL is MPI_REQUEST_NULL).
#pragma once

#include <mpi.h>

#include <climits>
#include <cstdint>
#include <cstdlib>
#include <type_traits>

#include "fermata_table.h"
#include "lower/binding/undeclared.h"

namespace fermata::lower {

using mpi::Count;
using mpi::Status;

template <class T>
inline T from_word(uint64_t word) {
    if constexpr (std::is_pointer_v<T>)
        return reinterpret_cast<T>(word);
    else
        return static_cast<T>(static_cast<uint32_t>(word));
}
template <class T>
inline uint64_t to_word(T handle) {
    if constexpr (std::is_pointer_v<T>)
        return reinterpret_cast<uint64_t>(handle);
    else
        return static_cast<uint32_t>(handle);
}

// lib(x): word -> library handle; put(&x, handle): the way back.
#define FERMATA_KIND(Kind, Type, Null)                                                         \
    inline Type lib(mpi::Real##Kind x) {                                                       \
        auto word = static_cast<uint64_t>(x);                                                  \
        return __builtin_expect(word == 0, 0) ? (Null) : from_word<Type>(word);                \
    }                                                                                          \
    inline mpi::Real##Kind real_##Kind(Type handle) {                                          \
        return static_cast<mpi::Real##Kind>(handle == (Null) ? uint64_t{0} : to_word(handle)); \
    }                                                                                          \
    inline void put(mpi::Real##Kind* to, Type handle) { *to = real_##Kind(handle); }

FERMATA_KIND(Comm, MPI_Comm, MPI_COMM_NULL)
FERMATA_KIND(Group, MPI_Group, MPI_GROUP_NULL)
FERMATA_KIND(Datatype, MPI_Datatype, MPI_DATATYPE_NULL)
FERMATA_KIND(Op, MPI_Op, MPI_OP_NULL)
FERMATA_KIND(Request, MPI_Request, MPI_REQUEST_NULL)
FERMATA_KIND(Errhandler, MPI_Errhandler, MPI_ERRHANDLER_NULL)
FERMATA_KIND(Info, MPI_Info, MPI_INFO_NULL)
FERMATA_KIND(Message, MPI_Message, MPI_MESSAGE_NULL)
FERMATA_KIND(Win, MPI_Win, MPI_WIN_NULL)
FERMATA_KIND(File, MPI_File, MPI_FILE_NULL)
#undef FERMATA_KIND

// All processes, and no messages: a probe there only turns the engine. (On a communicator of one process
// MPICH 4.0.2 looks at its own queue and turns nothing.)
MPI_Comm empty_world();

// MPI_Comm_dup of MPI_COMM_WORLD, collective, at the start. A code of the library's.
int world_again(MPI_Comm* made);

// MPI_Test right after a test of another request: the library's engine has just been turned.
#if defined(OPEN_MPI)
inline constexpr auto& test_another = MPI_Test;
#else
int test_another(MPI_Request* req, int* done, MPI_Status* status);
#endif

extern uint64_t ended_send;  // see mpi::Direct

// Errors. The slow halves live in support.cpp.
int error_class(int rc);  // library code -> standard class
inline int done(int rc) { return __builtin_expect(rc == MPI_SUCCESS, 1) ? 0 : error_class(rc); }
int library_class(int std_class);  // standard class -> library class
inline constexpr int kErrCount = 2, kErrArg = 13, kErrUnsupported = 55, kErrNoMem = 39, kErrInStatus = 19;
inline constexpr int kErrOther = 16;

// Ranks and tags: negative values are names. Standard: ANY_SOURCE -1, ANY_TAG -2, PROC_NULL -3, ROOT -4.
int special_rank(int std_rank);
int special_rank_back(int rank);
inline int lib_rank(int rank) { return __builtin_expect(rank >= 0, 1) ? rank : special_rank(rank); }
inline int std_rank(int rank) { return __builtin_expect(rank >= 0, 1) ? rank : special_rank_back(rank); }
inline int lib_tag(int tag) {
    return __builtin_expect(tag >= 0, 1) ? tag
                                         : (tag == -2 ? MPI_ANY_TAG : (MPI_ANY_TAG == tag ? -7777 : tag));
}
inline int std_tag(int tag) { return tag == MPI_ANY_TAG ? -2 : tag; }

// Buffers: the standard's MPI_BOTTOM is 0 and MPI_IN_PLACE is 1.
inline void* lib_buffer(const void* p) {
    return __builtin_expect(p == reinterpret_cast<const void*>(1), 0) ? MPI_IN_PLACE : const_cast<void*>(p);
}

// Statuses. The count is in bytes. `error` is the standard class.
inline int64_t status_bytes(const MPI_Status& s) {
#if defined(OPEN_MPI)
    return static_cast<int64_t>(s._ucount);
#else
    return static_cast<int64_t>(static_cast<uint32_t>(s.count_lo)) |
           (static_cast<int64_t>(static_cast<uint32_t>(s.count_hi_and_cancelled) >> 1) << 32);
#endif
}
inline bool status_cancelled(const MPI_Status& s) {
#if defined(OPEN_MPI)
    return s._cancelled != 0;
#else
    return (s.count_hi_and_cancelled & 1) != 0;
#endif
}
inline void put_status(Status* to, const MPI_Status& s, int error = 0) {
    if (to == nullptr) return;
    to->source = std_rank(s.MPI_SOURCE);
    to->tag = std_tag(s.MPI_TAG);
    to->error = error;
    to->cancelled = status_cancelled(s) ? 1 : 0;
    to->count = status_bytes(s);
    to->spare = 0;
}
// As the standard's empty status.
inline void put_empty(Status* to) {
    if (to == nullptr) return;
    *to = Status{};
    to->source = -1;
    to->tag = -2;
}
MPI_Status lib_status(const Status& s);
// The class of one operation's failure: ERR_IN_STATUS points into its status.
int status_error(int rc, const MPI_Status& s);

// Arrays that live for one call: small ones on the stack. Memory of the lower half; null() after exhaustion.
template <class T, int N = 32>
class Temp {
  public:
    explicit Temp(int64_t n) {
        if (n > N) data_ = static_cast<T*>(std::malloc(static_cast<size_t>(n) * sizeof(T)));
    }
    ~Temp() {
        if (data_ != small_) std::free(data_);
    }
    Temp(const Temp&) = delete;
    Temp& operator=(const Temp&) = delete;
    operator T*() { return data_; }
    T* get() { return data_; }
    bool null() const { return data_ == nullptr; }

  private:
    T small_[N];
    T* data_ = small_;
};

// Handles that a non-blocking operation may look at until it is complete: Open MPI 4.1.4 keeps the caller's
// array of datatypes to release them at the end. Its handles are the words themselves, so the caller's array
// (which lasts as long as the request) is passed as it is. MPICH takes its int handles out of the array in
// the call.
template <class T, class Real>
class Lasting {
  public:
    Lasting(const Real* words, int64_t n) : copy_(std::is_pointer_v<T> ? 0 : n), words_(words) {
        if constexpr (!std::is_pointer_v<T>)
            for (int64_t i = 0; i < n && !copy_.null(); ++i) copy_[i] = lib(words[i]);
    }
    const T* get() {
        if constexpr (std::is_pointer_v<T>)
            return reinterpret_cast<const T*>(words_);
        else
            return copy_;
    }
    bool null() const { return copy_.null(); }

  private:
    Temp<T> copy_;
    const Real* words_;
};

// A type that stands for `count` elements of `type` where the library takes int counts only. free() after use
// (the library keeps it while operations need it).
class Chunked {
  public:
    Chunked(Count count, MPI_Datatype type);
    ~Chunked();
    Chunked(const Chunked&) = delete;
    Chunked& operator=(const Chunked&) = delete;
    int error() const { return error_; }
    int count() const { return count_; }
    MPI_Datatype type() const { return type_; }

  private:
    int error_ = MPI_SUCCESS;
    int count_;
    MPI_Datatype type_;
    bool made_ = false;
};
// MPICH 4.0.2 refuses MPI_BOTTOM in MPI_Pack and its kin (its check for null pointers comes too early): the
// same memory under a type whose displacements are taken off, with the first byte's own address.
class Rebased {
  public:
    Rebased(void* buf, Count count, MPI_Datatype type) : buf_(buf), count_(count), type_(type) {
        if (__builtin_expect(buf == nullptr && count > 0, 0)) rebase();
    }
    ~Rebased() {
        if (made_) MPI_Type_free(&type_);
    }
    Rebased(const Rebased&) = delete;
    Rebased& operator=(const Rebased&) = delete;
    void* buf() const { return buf_; }
    Count count() const { return count_; }
    MPI_Datatype type() const { return type_; }

  private:
    void rebase();
    void* buf_;
    Count count_;
    MPI_Datatype type_;
    bool made_ = false;
};
inline int64_t sum_of(const int* numbers, int n) {
    int64_t sum = 0;
    for (int i = 0; i < n; ++i) sum += numbers[i];
    return sum;
}
inline bool fits(Count n) { return __builtin_expect(n <= INT_MAX, 1); }

// Everything the lower half makes returns its errors.
void errors_return_comm(MPI_Comm comm);
void errors_return_win(MPI_Win win);
void errors_return_file(MPI_File file);

}  // namespace fermata::lower
