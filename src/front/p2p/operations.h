// The steps that the point-to-point entries share.
#pragma once

#include "front/objects/api.h"
#include "front/p2p/buffered.h"
#include "front/p2p/engine.h"
#include "front/p2p/generalized.h"
#include "front/p2p/message.h"
#include "front/p2p/partitioned.h"

namespace fermata::front {

// A request that says what to send or receive. Unknown types and communicators were refused or are left null,
// so that the real library names the error.
__attribute__((always_inline)) inline Request* describe(What what, const void* buf, Count count,
                                                        Datatype type, int peer, int tag,
                                                        CommObject* comm) noexcept {
    Request* r = new_request(what);
    r->buf = const_cast<void*>(buf);
    r->count = count;
    r->peer = peer;
    r->tag = tag;
    r->type = find(type);
    if (r->type != nullptr && !r->type->predefined) type_ref(r->type);
    r->comm = comm;
    if (!comm->predefined) comm_ref(comm);
    r->world = comm->world_of(peer);  // -1 for wildcards and MPI_PROC_NULL
    return r;
}

// Starts a described request, on either path. On an error it goes back to the pool.
__attribute__((always_inline)) inline int begin_send(Call& call, Request* r) noexcept {
    SlowGuard guard(call.record());
    return start_send(r, slot_of(call.record()));
}
__attribute__((always_inline)) inline int begin(Call& call, Request* r) noexcept {
    clock::Slot& slot = slot_of(call.record());
    int rc;
    if (r->what == What::recv)
        rc = start_recv(r, slot);
    else if (r->mode == kBuffered)
        rc = start_buffered(r, slot);
    else
        rc = begin_send(call, r);
    if (__builtin_expect(rc != 0, 0)) {
        r->real = 0;
        release_request(r);
    }
    return rc;
}

// What starting it came to: the application's handle, or back to the pool.
__attribute__((always_inline)) inline int keep_or_release(Request* r, int rc,
                                                          mpi::Request* request) noexcept {
    if (__builtin_expect(rc == 0, 1)) {
        *request = handle_of(r);
    } else {
        r->real = 0;
        release_request(r);
    }
    return rc;
}

// Starts, waits and ends an operation of a blocking call.
inline int run_blocking(Call& call, Request* r, Status* status) noexcept {
    r->flags |= kInternal;
    int rc = begin(call, r);
    if (rc != 0) return rc;
    wait_complete(call, r);
    return consume(r, nullptr, status);
}

}  // namespace fermata::front
