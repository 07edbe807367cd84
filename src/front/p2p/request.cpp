#include "front/p2p/request.h"

#include "front/p2p/engine.h"
#include "front/p2p/generalized.h"
#include "front/wrappers/nonblocking.h"

namespace fermata::front {

RequestChunk* request_chunks;

namespace {

// The pool is locked only when several threads of the application call MPI at once; the agent uses it while they
// are stopped.
struct PoolLock {
    PoolLock() noexcept {
        if (front.threads != 0) engine.pool_lock.lock();
    }
    ~PoolLock() {
        if (front.threads != 0) engine.pool_lock.unlock();
    }
};

__attribute__((noinline)) void grow_pool() noexcept {
    auto* chunk = fm_new<RequestChunk>();
    chunk->items = static_cast<Request*>(fm_alloc(sizeof(Request) * kRequestsPerChunk));
    for (int i = 0; i < kRequestsPerChunk; i++) {
        auto* r = new (&chunk->items[i]) Request();
        give_handle(r);
    }
    for (int i = kRequestsPerChunk - 1; i >= 0; i--) {
        chunk->items[i].next = engine.pool;
        engine.pool = &chunk->items[i];
    }
    chunk->next = request_chunks;
    request_chunks = chunk;
}

}  // namespace

Request* new_request(What what) noexcept {
    PoolLock lock;
    if (__builtin_expect(engine.pool == nullptr, 0)) grow_pool();
    Request* r = engine.pool;
    engine.pool = r->next;
    r->next = nullptr;
    r->real = 0;
    r->what = what;
    r->flags = 0;
    r->mode = kStandard;
    r->world = -1;
    r->type = nullptr;
    r->comm = nullptr;
    r->collective = nullptr;
    r->error = 0;
    r->state = State::active;
    return r;
}

void release_request(Request* r) noexcept {
    switch (r->what) {
        case What::collective:
            if (r->collective != nullptr) release_collective(r->collective);
            break;
        case What::generalized:
            fm_free(r->generalized);
            break;
        case What::partitioned_send:
            fm_free(r->partitions);
            break;
        case What::sendrecv:
            release_request(r->pair->send);
            release_request(r->pair->recv);
            fm_free(r->pair->copy);
            fm_free(r->pair);
            break;
        case What::send:
            if (__builtin_expect(r->copy != nullptr, 0)) fm_free(r->copy);
            break;
        default:
            break;
    }
    if (r->type != nullptr && !r->type->predefined) type_unref(r->type);
    if (r->comm != nullptr && !r->comm->predefined) comm_unref(r->comm);
    r->what = What::none;
    r->real = 0;
    r->collective = nullptr;
    PoolLock lock;
    r->state = State::free;
    r->next = engine.pool;
    engine.pool = r;
}

mpi::Request request_completed() noexcept {
    Request* r = new_request(What::done);
    empty_status(&r->status);
    r->state = State::complete;
    return handle_of(r);
}

mpi::Request request_foreign(mpi::RealRequest real, mpi::Comm errors_on) noexcept {
    Request* r = new_request(What::foreign);
    r->comm = find(errors_on);
    if (r->comm != nullptr && !r->comm->predefined) comm_ref(r->comm);
    r->real = static_cast<uint64_t>(real);
    return handle_of(r);
}

}  // namespace fermata::front
