// Parts that both C fronts share: temporaries, lengths that only the library knows, bounds of ints.
//
// A front translates the application's ABI to internal values (fermata_types.h) and back. The naming is fixed
// for the generator (tools/fmgen/front_c.py): A_X is the ABI's type of MPI_X, in_x() goes inwards, out_x()
// outwards.
#pragma once

#include <climits>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "fermata_api.h"

namespace fermata::front {
struct Object;
}

namespace fermata::abi {

using namespace fermata::mpi;

// An integer no class of constants contains: what an unknown value becomes, so that it stays an error.
inline constexpr int kInvalid = -32700;

// Array on the stack up to N entries, from the application's malloc beyond. Never crosses to the lower half.
template <typename T, int N = 32>
class Temp {
  public:
    explicit Temp(int64_t n)
        : data_(n <= N ? local_ : static_cast<T*>(malloc(sizeof(T) * static_cast<size_t>(n)))) {}
    ~Temp() {
        if (data_ != local_) free(data_);
    }
    Temp(const Temp&) = delete;
    Temp& operator=(const Temp&) = delete;
    T* data() { return data_; }
    T& operator[](int64_t i) { return data_[i]; }

  private:
    T local_[N];
    T* data_;
};

// A count that does not fit the int the application passed becomes MPI_UNDEFINED (MPI-4.0 3.2.5).
inline int narrow(Count count) {
    return count > INT_MAX || count < INT_MIN ? FM_UNDEFINED : static_cast<int>(count);
}

// Entries of the arrays of a v/w-collective: members of the (remote) group, neighbours.
int peers(Comm comm);
int indegree(Comm comm);
int outdegree(Comm comm);
int cart_ndims(Comm comm);
// Is this the process whose other arguments count?
bool at_root(Comm comm, int root);

// String of at most `limit` bytes with its final 0 into the application's buffer; length without it.
inline void out_string(char* to, int limit, const char* from, int* length) {
    size_t n = strnlen(from, static_cast<size_t>(limit) - 1);
    memcpy(to, from, n);
    to[n] = 0;
    if (length != nullptr) *length = static_cast<int>(n);
}

}  // namespace fermata::abi

#define FRONT_API extern "C" __attribute__((visibility("default")))
