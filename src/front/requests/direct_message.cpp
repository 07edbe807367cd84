#include "front/core/fatal.h"
#include "front/requests/operations.h"

namespace fermata::front {

int DirectMessage::wait_on(int rc, RealRequest* request, void* status) noexcept {
    if (rc != 0) return class_of(rc);
    return front.table->WaitInPlace(request, status, &front.attention);
}

void DirectMessage::end_spent_receive(split::ThreadRecord* record) noexcept {
    if (front.direct.end_spent_receive() == 0) return;
    record->half = split::Half::upper;
    fatal_line("the MPI library says an error of a receive that it had said to have ended well");
}

bool DirectMessage::strip(split::ThreadRecord* record, RequestObject* r) noexcept {
    if ((r->flags & kPersistent) != 0) {
        r->real = 0;
        r->state = State::inactive;
        return false;
    }
    record->half = split::Half::upper;
    strip_request(r);
    record->half = split::Half::lower;
    return true;
}

int DirectMessage::send_failed(split::ThreadRecord* record, const CommObject* comm, int tag,
                               int rc) noexcept {
    DirectMessage call(record);
    rc = class_of(rc);
    call.up();
    uncount_sent(call.slot(), record->waiting_for, comm, tag);
    return call.end(rc, comm);
}

int DirectMessage::begin_failed(split::ThreadRecord* record, RequestObject* r, int rc) noexcept {
    rc = class_of(rc);
    DirectMessage(record).up();
    return begin_refused(record, r, rc);
}

int DirectMessage::begin_refused(split::ThreadRecord* record, RequestObject* r, int error) noexcept {
    record->half = split::Half::upper;
    if (r->what == What::send) uncount_sent(slot_of(record), r);
    Call call(record->waiting_in, record);
    const Comm comm = static_cast<Comm>(r->comm->handle);
    return call.finish(comm, or_release(r, error));
}

int DirectMessage::start_failed(split::ThreadRecord* record, RequestObject* r, int rc) noexcept {
    rc = class_of(rc);
    DirectMessage call(record);
    call.up();
    if (r->what == What::send) uncount_sent(call.slot(), r);
    r->real = 0;
    r->state = State::inactive;
    return call.end(rc, r->comm);
}

int DirectMessage::probe_failed(split::ThreadRecord* record, const CommObject* comm, int rc) noexcept {
    rc = class_of(rc);
    DirectMessage call(record);
    call.up();
    return call.end(rc, comm);
}

int DirectMessage::receive_failed(split::ThreadRecord* record, const CommObject* comm, int source,
                                  int rc) noexcept {
    rc = class_of(rc);
    DirectMessage(record).up();
    return receive_ended(record, comm, source, rc);
}

int DirectMessage::receive_ended(split::ThreadRecord* record, const CommObject* comm, int source,
                                 int error) noexcept {
    DirectMessage call(record);
    // A refused argument is no message; a truncated one is.
    if (error == FM_ERR_TRUNCATE) count_received(call.slot(), comm->world_of(source));
    return call.end(error, comm);
}

void DirectMessage::test_failed(split::ThreadRecord* record, RequestObject* r, const Status& status,
                                int rc) noexcept {
    rc = class_of(rc);
    DirectMessage(record).up();
    wait_failed(record, r, status, rc);
}
void DirectMessage::wait_failed(split::ThreadRecord* record, RequestObject* r, const Status& status,
                                int error) noexcept {
    DirectMessage call(record);
    call.rise();
    note_complete(r, status, error, call.slot());
}

}  // namespace fermata::front
