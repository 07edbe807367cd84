// The recording core: what the fronts called, in internal values, and what it shall answer.
#pragma once

#include "fermata_types.h"

namespace core {

using namespace fermata::mpi;

struct Seen {
    uint32_t word;  // last handle
    int integer[4];
    Count count;
    const void* pointer[2];
    uint32_t words[64];
    int n;
};
extern Seen seen;

struct Answer {
    int rc;
    uint32_t word;  // handle that comes out
    int integer;
    int flag;
    Count count;
    Status status;
    Status statuses[64];
    uint32_t words[64];
    const char* text;
};
extern Answer answer;
void reset();

// The last callback that was handed over.
struct Callback {
    void* fn;
    OpAdapter op;
    CopyAdapter copy;
    void* delete_fn;
    DeleteAdapter del;
    ErrhandlerAdapter err;
    GrequestQueryAdapter query;
};
extern Callback callback;

}  // namespace core
