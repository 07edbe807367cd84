// Sizes of a communicator's arrays, and pointers with a meaning of their own.
#pragma once

#include "lower/binding/library.h"

namespace fermata::lower {

int own_size(MPI_Comm comm);
int peers(MPI_Comm comm);            // remote size of an intercommunicator, else the size
int peers(MPI_Comm comm, int root);  // the same at the root of a rooted collective, 0 elsewhere
int indegree(MPI_Comm comm);
int outdegree(MPI_Comm comm);
inline bool in_place(const void* p) { return p == reinterpret_cast<const void*>(1); }
// Standard: MPI_UNWEIGHTED is 10, MPI_WEIGHTS_EMPTY is 11.
inline int* lib_weights(const int* p) {
    if (p == reinterpret_cast<const int*>(10)) return MPI_UNWEIGHTED;
    if (p == reinterpret_cast<const int*>(11)) return MPI_WEIGHTS_EMPTY;
    return const_cast<int*>(p);
}

}  // namespace fermata::lower
