// MPICH's Fortran ABI as far as the front has procedures of its own (see tools/fmgen/front_fortran.py).
#pragma once

#include "front/abi/mpich.h"

#define FRONT_FORTRAN extern "C" __attribute__((visibility("default")))

namespace fermata::abi {

// libmpichfort.so.12 passes on pointers that are C's already; only procedures without buffers are generated
// here.
inline A_Status* fstatus(const void* p) { return static_cast<A_Status*>(const_cast<void*>(p)); }

}  // namespace fermata::abi

#include "front/fortran/fortran.h"  // stands on all of the above
