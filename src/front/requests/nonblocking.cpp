#include "front/requests/nonblocking.h"

#include "front/core/fatal.h"
#include "front/requests/engine.h"

namespace fermata::front {

constinit RecordPool record_pool{};

void drop_arguments(CollectiveRecord* record) noexcept {
    for (int i = 0; i < record->types; i++)
        if (!record->type[i]->predefined) type_unref(record->type[i]);
    for (int i = 0; i < record->arrays; i++) fm_free(record->array[i]);
    for (int i = 0; i < record->type_arrays; i++) {
        for (int j = 0; j < record->type_count[i]; j++)
            if (record->type_array[i][j] != nullptr) type_unref(record->type_array[i][j]);
        fm_free(record->type_array[i]);
        fm_free(record->real_types[i]);
    }
    if (record->op != nullptr && !record->op->predefined) op_unref(record->op);
    logged::drop(record->part);
}

void* keep_array(CollectiveRecord* record, const void* data, size_t bytes) noexcept {
    if (data == nullptr) return nullptr;
    void* copy = fm_alloc(bytes);
    __builtin_memcpy(copy, data, bytes);
    record->array[record->arrays++] = copy;
    return copy;
}

int keep_types(CollectiveRecord* record, const mpi::Datatype* types, int count) noexcept {
    if (types == nullptr) return -1;
    int which = record->type_arrays++;
    auto size = static_cast<size_t>(count);
    record->type_array[which] = static_cast<TypeObject**>(fm_alloc(size * sizeof(TypeObject*)));
    record->real_types[which] = static_cast<mpi::RealDatatype*>(fm_alloc(size * sizeof(mpi::RealDatatype)));
    record->type_count[which] = count;
    for (int i = 0; i < count; i++) {
        TypeObject* type = find(types[i]);
        if (type != nullptr) type_ref(type);
        record->type_array[which][i] = type;
    }
    return which;
}

const mpi::RealDatatype* real_types(CollectiveRecord* record, int which) noexcept {
    if (which < 0) return nullptr;
    for (int i = 0; i < record->type_count[which]; i++)
        record->real_types[which][i] = real_word_of(record->type_array[which][i]);
    return record->real_types[which];
}

int indegree_of(const CommObject* c) noexcept {
    const Topology* t = c->topology;
    if (t == nullptr) return 0;
    if (t->kind == mpi::FM_CART) return 2 * static_cast<int>(t->dims.size());
    if (t->kind == mpi::FM_DIST_GRAPH) return static_cast<int>(t->sources.size());
    auto rank = static_cast<size_t>(c->rank);
    return rank < t->index.size() ? t->index[rank] - (rank > 0 ? t->index[rank - 1] : 0) : 0;
}

int outdegree_of(const CommObject* c) noexcept {
    const Topology* t = c->topology;
    if (t != nullptr && t->kind == mpi::FM_DIST_GRAPH) return static_cast<int>(t->destinations.size());
    return indegree_of(c);
}

namespace {

__attribute__((always_inline)) inline RequestObject* described(CommObject* comm,
                                                               CollectiveRecord* collective) noexcept {
    RequestObject* r = new_request(What::collective);
    r->comm = comm;
    if (!comm->predefined) comm_ref(comm);
    r->collective = collective;
    return r;
}

}  // namespace

int begin_collective(split::ThreadRecord* record, CommObject* comm, CollectiveRecord* collective,
                     mpi::Request* request) noexcept {
    RequestObject* r = described(comm, collective);
    int rc = start_collective(record, r);
    if (__builtin_expect(rc != 0, 0)) {
        r->real = 0;
        release_request(r);
        return rc;
    }
    *request = handle_of(r);
    return 0;
}

void refuse_in_2pc(const char* name) noexcept {
    if (__builtin_expect(!front.clock->policy().barrier_first, 1)) return;
    const char* pieces[] = {"fermata: --protocol 2pc knows only blocking collectives, and the program calls ",
                            name, ": use cc-d", nullptr};
    fatal_join(pieces);
}

int init_collective(CommObject* comm, CollectiveRecord* collective, mpi::Request* request) noexcept {
    RequestObject* r = described(comm, collective);
    make_persistent(r);
    *request = handle_of(r);
    return 0;
}

// ---- the two-phase protocol's barrier: for comparison with the collective clock

void CollectiveScope::barrier_first(clock::Slot&) noexcept {
    if (comm_ == nullptr) return;
    CollectiveRecord* record =
        new_collective([](CollectiveRecord*, mpi::RealComm comm,
                          mpi::RealRequest* request) { return LOWER(Ibarrier)(comm, request); },
                       "MPI_Ibarrier");
    RequestObject* r = described(comm_, record);
    r->flags |= kInternal;
    if (start_collective(record_, r) == 0) wait_complete(*call_, r);
    r->real = 0;
    release_request(r);
}

}  // namespace fermata::front
