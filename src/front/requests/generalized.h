// Generalized requests: three functions of the application around a flag; all in the upper half.
#pragma once

#include "fermata_types.h"

namespace fermata::front {

struct Generalized {
    void* query_fn;
    mpi::GrequestQueryAdapter query;
    void* free_fn;
    mpi::GrequestFreeAdapter free;
    void* cancel_fn;
    mpi::GrequestCancelAdapter cancel;
    void* extra_state;
    volatile uint32_t done;
};

}  // namespace fermata::front
