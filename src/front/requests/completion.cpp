#include "front/requests/completion.h"

namespace fermata::front {

bool look_up(int n, const mpi::Request* handles, RequestObject** out) noexcept {
    for (int i = 0; i < n; i++) {
        out[i] = find_request(handles[i]);
        if (__builtin_expect(out[i] == nullptr && handles[i] != FM_REQUEST_NULL, 0)) return false;
    }
    return true;
}

Comm comm_of(const RequestObject* r) noexcept {
    return r != nullptr && r->comm != nullptr && r->comm->handle != 0 ? static_cast<Comm>(r->comm->handle)
                                                                      : FM_COMM_SELF;
}

bool test_one(Call& call, RequestObject* r) noexcept {
    if (r->state == State::active) {
        LockIfCareful guard(call.record());
        if (!advance(r, slot_of(call.record()))) return false;
    }
    return may_tell(r, call.record(), false);
}

int consume_all(Call& call, int count, mpi::Request* requests, RequestObject* const* items,
                Status* statuses) noexcept {
    int failed = 0;
    Comm comm = FM_COMM_SELF;
    for (int i = 0; i < count; i++) {
        RequestObject* r = items[i];
        Status* status = statuses != nullptr ? &statuses[i] : nullptr;
        if (ignored(r)) {
            empty_status(status);
            continue;
        }
        if (r->error != 0 && failed == 0) comm = comm_of(r);
        int rc = consume(r, &requests[i], status);
        if (__builtin_expect(rc != 0, 0)) failed = FM_ERR_IN_STATUS;
    }
    return call.finish(comm, failed);
}

void before_test(Call& call) noexcept {
    if (!pending_checkpoint()) return;
    Careful careful(call.record());
    pull(call.record(), slot_of(call.record()));
}

}  // namespace fermata::front
