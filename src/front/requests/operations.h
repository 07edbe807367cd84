// The steps that the point-to-point entries share.
#pragma once

#include "front/objects/api.h"
#include "front/requests/buffered.h"
#include "front/requests/direct_message.h"
#include "front/requests/engine.h"
#include "front/requests/generalized.h"
#include "front/requests/logged.h"
#include "front/requests/message.h"
#include "front/requests/partitioned.h"

namespace fermata::front {

// A request that says what to send or receive. Unknown types and communicators were refused or are left null,
// so that the real library names the error.
__attribute__((always_inline)) inline RequestObject* describe(What what, const void* buf, Count count,
                                                              Datatype type, int peer, int tag,
                                                              CommObject* comm) noexcept {
    RequestObject* r = take_request();
    // World rank -1: wildcards and MPI_PROC_NULL.
    fill(r, what, buf, count, find(type), peer, comm->world_of(peer), tag, comm);
    return r;
}

// On an error a request that did not start goes back to the pool.
__attribute__((always_inline)) inline int or_release(RequestObject* r, int rc) noexcept {
    if (__builtin_expect(rc != 0, 0)) {
        r->real = 0;
        release_request(r);
    }
    return rc;
}

// Starts a described request, on either path.
__attribute__((always_inline)) inline int begin_send(Call& call, RequestObject* r) noexcept {
    LockIfCareful guard(call.record());
    return start_send(r, slot_of(call.record()));
}
__attribute__((always_inline)) inline int begin(Call& call, RequestObject* r) noexcept {
    if (logged::on()) return logged::begin(call, r);
    clock::Slot& slot = slot_of(call.record());
    if (r->what == What::recv) return or_release(r, start_recv(r, slot));
    if (r->mode == kBuffered) return or_release(r, start_buffered(r, slot));
    return or_release(r, begin_send(call, r));
}

// MPI_Isend and its modes, MPI_Irecv.
__attribute__((always_inline)) inline int immediate(Call& call, What what, SendMode mode, const void* buf,
                                                    Count count, Datatype type, int peer, int tag, Comm comm,
                                                    mpi::Request* request) noexcept {
    CommObject* c = find(comm);
    if (__builtin_expect(c == nullptr, 0)) return FM_ERR_COMM;
    RequestObject* r = describe(what, buf, count, type, peer, tag, c);
    r->mode = mode;
    int rc = begin(call, r);
    if (__builtin_expect(rc == 0, 1)) *request = handle_of(r);
    return rc;
}

// In the careful tier, or the thread's first call.
__attribute__((noinline)) inline int immediate_as_call(const char* function, What what, const void* buf,
                                                       Count count, Datatype type, int peer, int tag,
                                                       Comm comm, mpi::Request* request) noexcept {
    Call call(function);
    return call.finish(comm, immediate(call, what, kStandard, buf, count, type, peer, tag, comm, request));
}

// The whole of MPI_Isend and MPI_Irecv as long as all goes well.
template <What what, typename Direct, typename Lower, typename Buffer>
__attribute__((always_inline)) inline int immediate_at_once(const char* function, Direct mpi::Direct::*direct,
                                                            Lower mpi::Table::*lower, Buffer* buf,
                                                            Count count, Datatype type, int peer, int tag,
                                                            Comm comm, mpi::Request* request) {
    DirectMessage call(function, DirectMessage::kNotCarefulNorWatched);
    if (!call) return immediate_as_call(function, what, buf, count, type, peer, tag, comm, request);
    CommObject* const c = find(comm);
    TypeObject* const t = find(type);
    RequestObject* const r = request_pool.first;
    if (__builtin_expect(c == nullptr || t == nullptr || r == nullptr || t->real == 0, 0) ||
        peer == FM_PROC_NULL) {
        call.give_up();
        return immediate_as_call(function, what, buf, count, type, peer, tag, comm, request);
    }
    call.take<what>(r, buf, count, t, peer, tag, c);
    int rc =
        are_plain_numbers(count, peer, tag)
            ? call.direct(front.direct.*direct, buf, static_cast<int>(count), real_of(t), peer, tag,
                          real_of(c), real_request(r))
            : call.lower(front.table->*lower, buf, count, real_of(t), peer, tag, real_of(c), real_request(r));
    if (__builtin_expect(rc != 0, 0)) return DirectMessage::begin_refused(call.record(), r, rc);
    *request = handle_of(r);
    return call.end();
}

// Starts, waits and ends an operation of a blocking call.
inline int run_blocking(Call& call, RequestObject* r, Status* status) noexcept {
    if (logged::on()) return logged::run_blocking(call, r, status);
    r->flags |= kInternal;
    int rc = begin(call, r);
    if (rc != 0) return rc;
    wait_complete(call, r);
    return consume(r, nullptr, status);
}

}  // namespace fermata::front
