// Reductions defined by the application: from the library's callback back through the gate.
//
// MPI gives a user function no argument of its own, so every live op gets a few instructions of its own (a
// thunk) that load its record and jump to the handler. Thunks come in pages that are written once and then
// made read-only and executable; there is no limit on the number of ops.
#pragma once

#include <cstdint>

#include "fermata_table.h"

namespace fermata::lower {

struct OpRecord {
    mpi::OpCallback fn;  // upper code
    uint64_t cookie;     // upper value
    uint64_t real;       // the op's handle word once it exists, 0 = free
    void* thunk;         // what the library calls
    OpRecord* next;      // free list, oldest first
};

// A record with its thunk, or nullptr without memory. `handler` is the library-specific end of every thunk:
// it gets the record as fifth argument, after those of MPI_User_function.
OpRecord* op_acquire(void* handler, mpi::OpCallback fn, uint64_t cookie);
// Makes the op findable by its handle.
void op_bind(OpRecord* record, uint64_t real);
// The op was freed (or never made). The record is reused as late as possible: operations in flight may still
// call it.
void op_release(OpRecord* record);
OpRecord* op_find(uint64_t real);

// Calls upper code from wherever the calling lower code runs.
void call_upper(const OpRecord* record, void* in, void* inout, int64_t len, uint64_t real_type);

}  // namespace fermata::lower
