// Non-blocking collectives: the record from which one can be issued again.
//
// The generated wrapper of MPI_Iallreduce builds a record: a copy of its arguments (arrays included, handles
// as objects with a reference) and the function that issues them. The collective clock counts the instance
// when its completion is *told to the application*, so an instance beyond the target of a checkpoint has been
// told to nobody and is simply issued again after a restart.
#pragma once

#include "clock/clock.h"
#include "front/requests/collective.h"
#include "front/requests/direct_message.h"
#include "front/requests/engine.h"
#include "front/requests/logged.h"

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
    logged::Part* part = nullptr;  // in a job with a message log
    // The arguments: a struct that the generated wrapper knows.
    alignas(16) char args[112];
};

// ---- for the generated wrappers: how a record is filled

// Records that are free.
struct RecordPool {
    SpinLock lock;
    CollectiveRecord* first;
};
extern RecordPool record_pool;

__attribute__((always_inline)) inline CollectiveRecord* new_collective(IssueFunction issue,
                                                                       const char* name) noexcept {
    CollectiveRecord* record;
    {
        PoolGuard guard(record_pool.lock);
        record = record_pool.first;
        if (__builtin_expect(record == nullptr, 0))
            record = static_cast<CollectiveRecord*>(fm_alloc(sizeof(CollectiveRecord)));
        else
            record_pool.first = record->next_free;
    }
    record->issue = issue;
    record->name = name;
    record->done = nullptr;
    record->instance = 0;
    record->reissuable = true;
    record->arrays = record->type_arrays = record->types = 0;
    record->op = nullptr;
    record->part = nullptr;
    return record;
}

void drop_arguments(CollectiveRecord* record) noexcept;
inline void release_collective(CollectiveRecord* record) noexcept {
    if (__builtin_expect((record->arrays | record->type_arrays | record->types) != 0 ||
                             record->op != nullptr || record->part != nullptr,
                         0))
        drop_arguments(record);
    PoolGuard guard(record_pool.lock);
    record->next_free = record_pool.first;
    record_pool.first = record;
}

__attribute__((always_inline)) inline TypeObject* keep(CollectiveRecord* record,
                                                       mpi::Datatype handle) noexcept {
    TypeObject* type = find(handle);
    if (type != nullptr && !type->predefined) {
        type_ref(type);
        record->type[record->types++] = type;
    }
    return type;
}
__attribute__((always_inline)) inline OpObject* keep(CollectiveRecord* record, mpi::Op handle) noexcept {
    OpObject* op = find(handle);
    if (op != nullptr && !op->predefined) {
        ref(op);
        record->op = op;
    }
    return op;
}
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
// Counts the instance of a described collective (may park here, if it cannot be issued again) and issues it.
// A persistent one begins so, too.
__attribute__((always_inline)) inline int start_collective(split::ThreadRecord* record,
                                                           RequestObject* r) noexcept {
    auto* on = r->comm->clock;
    if (__builtin_expect(on != nullptr, 1)) {
        uint32_t mode = record->mode;
        r->collective->instance = front.clock->start(*on, slot_of(record), r->collective->reissuable);
        record->mode = mode;
    }
    LockIfCareful guard(record);
    return r->collective->issue(r->collective, real_of(r->comm),
                                reinterpret_cast<mpi::RealRequest*>(&r->real));
}
// The request of MPI_Ixxx, started.
int begin_collective(split::ThreadRecord* record, CommObject* comm, CollectiveRecord* collective,
                     mpi::Request* request) noexcept;
// The request of MPI_Xxx_init: nothing happens yet (it need not talk to the others: Start starts an ordinary
// one).
int init_collective(CommObject* comm, CollectiveRecord* collective, mpi::Request* request) noexcept;

}  // namespace fermata::front
