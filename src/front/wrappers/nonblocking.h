// Non-blocking collectives: the record from which one can be issued again.
//
// The generated wrapper of MPI_Iallreduce builds a record: a copy of its arguments (arrays included, handles
// as objects with a reference) and the function that issues them. The collective clock counts the instance
// when its completion is *told to the application*, so an instance beyond the target of a checkpoint has been
// told to nobody and is simply issued again after a restart.
#pragma once

#include "clock/clock.h"
#include "front/p2p/request.h"

namespace fermata::front {

struct CollectiveRecord;
// Calls the lower half with the record's arguments and *current* real handles.
using IssueFunction = int (*)(CollectiveRecord* record, mpi::RealComm comm, mpi::RealRequest* request);

struct CollectiveRecord {
    union {
        IssueFunction issue;
        CollectiveRecord* next_free;  // in the pool
    };
    const char* name;
    // After the lower half's completion (any context, the agent's too); usually null.
    void (*done)(CollectiveRecord* record) = nullptr;
    clock::Instance instance = 0;  // of the communicator's clock; 0 = persistent and not started
    bool reissuable = true;        // false: the first run may have changed its own input
    uint8_t arrays = 0, type_arrays = 0, types = 0;
    void* array[6];  // copies of array arguments (fm heap)
    // Arrays of types (Ialltoallw): the objects, and the real handles for as long as the lower half works.
    TypeObject** type_array[2];
    mpi::RealDatatype* real_types[2];
    int32_t type_count[2];
    TypeObject* type[2];  // single types; all hold references
    OpObject* op = nullptr;
    // The arguments: a struct that the generated wrapper knows.
    alignas(16) char args[112];
};

// ---- for the generated wrappers: how a record is filled

CollectiveRecord* new_collective(IssueFunction issue, const char* name) noexcept;
void release_collective(CollectiveRecord* record) noexcept;

TypeObject* keep(CollectiveRecord* record, mpi::Datatype type) noexcept;
OpObject* keep(CollectiveRecord* record, mpi::Op op) noexcept;
void* keep_array(CollectiveRecord* record, const void* data, size_t bytes) noexcept;  // null stays null
// The position of the array of types in the record; -1 for null.
int keep_types(CollectiveRecord* record, const mpi::Datatype* types, int count) noexcept;
template <typename T>
const T* keep(CollectiveRecord* record, const T* data, int count) noexcept {
    return static_cast<const T*>(keep_array(record, data, sizeof(T) * static_cast<size_t>(count)));
}
// Real handles of a kept array of types, valid as long as the record.
const mpi::RealDatatype* real_types(CollectiveRecord* record, int which) noexcept;
inline mpi::RealDatatype real_word_of(const TypeObject* type) noexcept {
    return static_cast<mpi::RealDatatype>(type != nullptr ? type->real : 0);
}
inline mpi::RealOp real_word_of(const OpObject* op) noexcept {
    return static_cast<mpi::RealOp>(op != nullptr ? op->real : 0);
}

// Lengths of array arguments.
inline int peers_of(const CommObject* c) noexcept { return c->inter ? c->remote_size : c->size; }
inline bool is_root(const CommObject* c, int root) noexcept {
    return c->inter ? root == mpi::FM_ROOT : root == c->rank;
}
int indegree_of(const CommObject* c) noexcept;
int outdegree_of(const CommObject* c) noexcept;

// Two-phase commit has no answer to non-blocking collectives: with --protocol 2pc the first one ends the job
// in one line.
void refuse_in_2pc(const char* name) noexcept;
// The request of MPI_Ixxx: counts the instance and issues it.
int begin_collective(Call& call, CommObject* comm, CollectiveRecord* record, mpi::Request* request) noexcept;
// The request of MPI_Xxx_init: nothing happens yet (it need not talk to the others: Start starts an ordinary
// one).
int init_collective(CommObject* comm, CollectiveRecord* record, mpi::Request* request) noexcept;
// A persistent one begins.
int start_collective(Call& call, Request* r) noexcept;

}  // namespace fermata::front
