// Starting persistent requests, freeing and cancelling.
#include "front/requests/completion.h"
#include "front/requests/nonblocking.h"

namespace fermata::front {

namespace {

int start_one(Call& call, RequestObject* r) noexcept {
    if (r == nullptr || (r->flags & kPersistent) == 0 || r->state != State::inactive) return FM_ERR_REQUEST;
    clock::Slot& slot = slot_of(call.record());
    int rc;
    r->error = 0;
    r->real = 0;
    r->state = State::active;
    if (logged::on()) {
        if (r->what == What::collective) return logged::start_persistent(call, r);
        if (r->what != What::send && r->what != What::recv) logged::refuse("partitioned communication");
        int done = logged::begin(call, r);
        if (done != 0) r->state = State::inactive;
        return done;
    }
    switch (r->what) {
        case What::recv:
            rc = start_recv(r, slot);
            break;
        case What::send:
            rc = r->mode == kBuffered ? start_buffered(r, slot) : begin_send(call, r);
            break;
        case What::partitioned_send:
            r->partitions->left = r->partitions->count;
            rc = 0;
            break;
        case What::collective:
            rc = start_collective(call.record(), r);
            break;
        default:
            rc = FM_ERR_REQUEST;
    }
    if (__builtin_expect(rc != 0, 0)) {
        r->real = 0;
        r->state = State::inactive;
    }
    return rc;
}

}  // namespace

extern "C" {

int fm_Start(mpi::Request* request) {
    Call call("MPI_Start");
    RequestObject* r = find_request(*request);
    int rc = start_one(call, r);
    return call.finish(comm_of(r), rc);
}

int fm_Startall(int count, mpi::Request* requests) {
    Call call("MPI_Startall");
    for (int i = 0; i < count; i++) {
        RequestObject* r = find_request(requests[i]);
        int rc = start_one(call, r);
        if (rc != 0) return call.finish(comm_of(r), rc);
    }
    return 0;
}

int fm_Request_free(mpi::Request* request) FERMATA_LOCKS_UNSEEN {
    Call call("MPI_Request_free");
    RequestObject* r = find_request(*request);
    if (r == nullptr) return call.finish(FM_ERR_REQUEST);
    int rc = 0;
    if (r->what == What::generalized) {
        // free_fn runs when the request is complete; a freed one that is not waits for Grequest_complete.
        if (r->generalized->done != 0)
            rc = consume(r, request, nullptr);
        else
            r->flags |= kOrphan;
    } else if (logged::on() && r->state == State::active && r->what != What::foreign &&
               r->what != What::of_file) {
        logged::free_active(call, r);
    } else if (r->state == State::active && r->what == What::sendrecv) {
        LockIfCareful guard(call.record());
        // Two orphans in place of a pair; a replaced buffer's copy goes with the send.
        r->pair->send->copy = r->pair->copy;
        RequestObject* send = r->pair->send;
        RequestObject* recv = r->pair->recv;
        fm_free(r->pair);
        r->pair = nullptr;
        r->what = What::done;
        release_request(r);
        if (careful_tier()) {
            link_orphan(send);
            link_orphan(recv);
        } else {
            adopt_orphan(send);
            adopt_orphan(recv);
        }
    } else if (r->state == State::active) {
        SpinGuard guard(library_lock);
        reap_orphans(slot_of(call.record()));
        link_orphan(r);
    } else {
        release_request(r);
    }
    *request = FM_REQUEST_NULL;
    return call.finish(rc);
}

int fm_Cancel(mpi::Request* request) {
    Call call("MPI_Cancel");
    RequestObject* r = find_request(*request);
    if (r == nullptr || r->what == What::collective) return call.finish(FM_ERR_REQUEST);
    if (r->what == What::generalized) {
        int rc = 0;
        if (r->generalized->cancel != nullptr)
            rc = r->generalized->cancel(r->generalized->cancel_fn, r->generalized->extra_state,
                                        r->generalized->done != 0);
        return call.finish(rc);
    }
    if (r->what == What::sendrecv || r->what == What::partitioned_send || r->state != State::active) return 0;
    if (logged::on()) {
        if (r->what == What::recv) logged::refuse("MPI_Cancel of a receive");
        return 0;  // a send is completed, as both libraries do
    }
    int rc = 0;
    {
        LockIfCareful guard(call.record());
        if (r->real != 0 && (r->flags & kCounted) == 0) {  // what is matched is not cancelled
            r->flags |= kCancelled;
            rc = LOWER(Cancel)(reinterpret_cast<RealRequest*>(&r->real));
        }
    }
    return call.finish(comm_of(r), rc);
}

}  // extern "C"

}  // namespace fermata::front
