// Wait*, Test* and what else is done to a request.
//
// The fast path hands the whole array of real requests to the lower half in one crossing. Anything that is
// not an ordinary operation of the lower half (a drained receive, a generalized request, a part of a pair)
// takes the general path, which looks at one request at a time.
#include "front/requests/nonblocking.h"
#include "front/requests/operations.h"

namespace fermata::front {
namespace {

// Arrays of any length: on the stack when short.
template <typename T, int N>
class Temporary {
  public:
    explicit Temporary(int n) noexcept
        : data_(n <= N ? own() : static_cast<T*>(fm_alloc(sizeof(T) * static_cast<size_t>(n)))) {}
    ~Temporary() {
        if (data_ != own()) fm_free(data_);
    }
    Temporary(const Temporary&) = delete;
    Temporary& operator=(const Temporary&) = delete;
    T& operator[](int i) { return data_[i]; }
    T* data() { return data_; }

  private:
    T* own() { return reinterpret_cast<T*>(room_); }
    alignas(T) char room_[sizeof(T) * N];
    T* data_;
};
constexpr int kOnStack = 64;

// Something the lower half's own waits and tests of many can be given: requests of files and windows are
// asked one by one, because MPICH 4.0.2's MPI_Testall ends those of files twice.
__attribute__((always_inline)) inline bool ordinary(const RequestObject* r) noexcept {
    return r->state == State::active && r->real != 0 && r->what != What::sendrecv &&
           r->what != What::foreign && r->what != What::of_file;
}

// Virtual requests of an array; null where MPI ignores the entry's handle. False: garbage among them.
bool look_up(int n, const mpi::Request* handles, RequestObject** out) noexcept {
    for (int i = 0; i < n; i++) {
        out[i] = find_request(handles[i]);
        if (__builtin_expect(out[i] == nullptr && handles[i] != FM_REQUEST_NULL, 0)) return false;
    }
    return true;
}

// Where errors of a request are raised. Read it before the request is consumed.
Comm comm_of(const RequestObject* r) noexcept {
    return r != nullptr && r->comm != nullptr && r->comm->handle != 0 ? static_cast<Comm>(r->comm->handle)
                                                                      : FM_COMM_SELF;
}

// One look at a request on whatever path; true when complete and allowed to be told.
bool test_one(Call& call, RequestObject* r) noexcept {
    if (r->state == State::active) {
        LockIfCareful guard(call.record());
        if (!advance(r, slot_of(call.record()))) return false;
    }
    return may_tell(r, call.record(), false);
}

// A failing test pulls, so that senders to a polling rank get on, and tells the clock.
void before_test(Call& call) noexcept {
    if (!pending_checkpoint()) return;
    Careful careful(call.record());
    pull(call.record(), slot_of(call.record()));
}

// The usual request: an operation that the lower half works on, with nothing to do at its end but counting.
__attribute__((always_inline)) inline bool plain(const RequestObject* r) noexcept {
    if (r->state != State::active || r->real == 0 || r->flags != 0) return false;
    if (r->what == What::send || r->what == What::recv) return r->mode < kSynchronous;
    return r->what == What::collective && r->collective->done == nullptr;
}

// May the ends of these collectives be told at once? If not, all are asked for again (may_tell).
__attribute__((always_inline)) inline bool may_tell_now(RequestObject* const* items, int count) noexcept {
    for (int i = 0; i < count; i++) {
        const RequestObject* r = items[i];
        if (r->what != What::collective || r->comm->clock == nullptr) continue;
        if (!front.clock->tell_now(*r->comm->clock, r->collective->instance)) return false;
    }
    return true;
}

// Its end, told. `statuses` may be null for what status_unneeded() says.
__attribute__((always_inline)) inline void end_plain(RequestObject* r, const Status* statuses, int at,
                                                     clock::Slot& slot) noexcept {
    if (r->what == What::recv)
        count_received(
            slot, __builtin_expect(r->world >= 0, 1) ? r->world : r->comm->world_of(statuses[at].source));
    release_request(r);
}

// The request of a handle if it is plain and the lower half's waits may have it without a status of ours;
// null otherwise. `collective`: set when it is one.
__attribute__((always_inline)) inline RequestObject* find_plain(mpi::Request handle, bool blind,
                                                                bool* collective) noexcept {
    auto* r = static_cast<RequestObject*>(find_dynamic(static_cast<uint32_t>(handle), Kind::request));
    if (__builtin_expect(r == nullptr || r->real == 0, 0)) return nullptr;
    const uint32_t head = word_of(r);
    if (head == head_word(What::send, State::active)) return r;
    if (head == head_word(What::recv, State::active) && (!blind || r->world >= 0)) return r;
    if (!plain(r) || (blind && !status_unneeded(r))) return nullptr;
    *collective = true;
    return r;
}

// What a wait or test of the lower half that gave up, failed, or ended collectives that may not be told yet
// leaves to the general path: `next` have ended. Without statuses MPI says only that one of them failed; so
// each that may have is marked.
__attribute__((noinline)) void note_some(int next, RequestObject* const* items, const Status* statuses,
                                         int rc, clock::Slot& slot) noexcept {
    static constexpr Status none{};
    for (int i = 0; i < next; i++)
        if (items[i] != nullptr)
            note_complete(items[i], statuses != nullptr ? statuses[i] : none,
                          statuses != nullptr ? statuses[i].error : rc, slot);
}

// One request that is plain. False: it is left for the general path.
__attribute__((always_inline)) inline bool wait_one(const DirectMessage& call, RequestObject* r,
                                                    bool collective, Status* status) noexcept {
    int rc = call.lower(front.table->WaitOneSpin, real_request(r), status, &front.attention);
    call.rise();
    if (__builtin_expect(rc != 0, 0) || (collective && !may_tell_now(&r, 1))) {
        note_some(rc < 0 ? 0 : 1, &r, status, rc, call.slot());
        return false;
    }
    end_plain(r, status, 0, call.slot());
    return true;
}

// One crossing for requests of which each is plain. False: some (or all) are left for the general path.
__attribute__((always_inline)) inline bool wait_plain(const DirectMessage& call, int count,
                                                      mpi::Request* handles, Status* statuses) noexcept {
    if (__builtin_expect(count > kOnStack, 0)) return false;
    RequestObject* items[kOnStack];
    RealRequest reals[kOnStack];
    bool collectives = false;
    for (int i = 0; i < count; i++) {
        RequestObject* r = find_plain(handles[i], statuses == nullptr, &collectives);
        if (__builtin_expect(r == nullptr, 0)) return false;
        items[i] = r;
        reals[i] = static_cast<RealRequest>(r->real);
    }
    int next = 0;
    int rc = call.lower(front.table->WaitSpin, count, reals, statuses, &front.attention, &next);
    call.rise();
    clock::Slot& slot = call.slot();
    if (__builtin_expect(rc != 0 || next < count, 0) || (collectives && !may_tell_now(items, count))) {
        note_some(next, items, statuses, rc, slot);
        return false;
    }
    for (int i = 0; i < count; i++) {
        end_plain(items[i], statuses, i, slot);
        handles[i] = FM_REQUEST_NULL;
    }
    return true;
}

__attribute__((noinline)) int wait_all(Call& call, int count, mpi::Request* requests,
                                       Status* statuses) noexcept {
    Temporary<RequestObject*, kOnStack> items(count);
    if (!look_up(count, requests, items.data())) return call.finish(FM_ERR_REQUEST);

    bool all_ordinary = true;
    bool blind = statuses == nullptr;  // nobody will look at a status, we neither
    Temporary<RealRequest, kOnStack> reals(count);
    for (int i = 0; i < count; i++) {
        RequestObject* r = items[i];
        if (r == nullptr) {
            reals[i] = RealRequest{};
        } else if (__builtin_expect(ordinary(r), 1)) {
            reals[i] = static_cast<RealRequest>(r->real);
            blind = blind && status_unneeded(r);
        } else {
            all_ordinary = false;
            break;
        }
    }
    if (all_ordinary && front.attention == 0) {
        clock::Slot& slot = slot_of(call.record());
        int next = 0;
        Temporary<Status, kOnStack> own(statuses == nullptr && !blind ? count : 0);
        Status* out = blind ? nullptr : statuses != nullptr ? statuses : own.data();
        int rc = LOWER(WaitSpin)(count, reals.data(), out, &front.attention, &next);
        note_some(next, items.data(), out, rc, slot);
        // Those after `next` are untouched: the general path below takes over.
    }
    // An open one is waited for alone; the others make progress meanwhile.
    int failed = 0;
    Comm comm = FM_COMM_SELF;
    for (int i = 0; i < count; i++) {
        RequestObject* r = items[i];
        if (ignored(r) || (r->state == State::complete && r->what != What::collective)) continue;
        wait_complete(call, r, items.data(), count);
    }
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

__attribute__((noinline)) int waitall_as_call(int count, mpi::Request* requests, Status* statuses) noexcept {
    Call call("MPI_Waitall");
    if (count <= 0) return call.finish(count < 0 ? FM_ERR_ARG : 0);
    return wait_all(call, count, requests, statuses);
}

__attribute__((noinline)) int wait_as_call(mpi::Request* request, Status* status) noexcept {
    Call call("MPI_Wait");
    RequestObject* r = find_request(*request);
    if (r != nullptr) call.record()->waiting_for = r->world;
    if (__builtin_expect(r == nullptr || r->state == State::inactive, 0)) {
        if (r == nullptr && *request != FM_REQUEST_NULL) return call.finish(FM_ERR_REQUEST);
        empty_status(status);
        return 0;
    }
    wait_complete(call, r);
    Comm comm = comm_of(r);
    return call.finish(comm, consume(r, request, status));
}

__attribute__((noinline)) int test_as_call(mpi::Request* request, int* flag, Status* status) noexcept {
    Call call("MPI_Test");
    RequestObject* r = find_request(*request);
    if (__builtin_expect(r == nullptr || r->state == State::inactive, 0)) {
        if (r == nullptr && *request != FM_REQUEST_NULL) return call.finish(FM_ERR_REQUEST);
        *flag = 1;
        empty_status(status);
        return 0;
    }
    before_test(call);
    if (!test_one(call, r)) {
        *flag = 0;
        poll_failed(call, &r, 1);
        return 0;
    }
    *flag = 1;
    poll_succeeded(call);
    Comm comm = comm_of(r);
    return call.finish(comm, consume(r, request, status));
}

}  // namespace

extern "C" {

int fm_Wait(mpi::Request* request, Status* status) {
    {
        DirectMessage call("MPI_Wait", DirectMessage::kNotCareful);
        if (!call) return wait_as_call(request, status);
        bool collective = false;
        RequestObject* const r = find_plain(*request, status == nullptr, &collective);
        if (__builtin_expect(r != nullptr, 1)) {
            call.record()->waiting_for = r->world;
            if (wait_one(call, r, collective, status)) {
                *request = FM_REQUEST_NULL;
                return call.end();
            }
        }
        call.end();
    }
    return wait_as_call(request, status);
}
int fm_Test(mpi::Request* request, int* flag, Status* status) {
    {
        DirectMessage call("MPI_Test", DirectMessage::kNotCareful);
        if (!call) return test_as_call(request, flag, status);
        bool collective = false;
        RequestObject* const r = find_plain(*request, status == nullptr, &collective);
        if (__builtin_expect(r == nullptr, 0)) {
            call.give_up();
            return test_as_call(request, flag, status);
        }
        int rc = call.lower(front.table->Test, real_request(r), flag, status);
        if (rc == 0 && *flag == 0) return call.end();
        call.rise();
        if (__builtin_expect(rc == 0, 1) && (!collective || may_tell_now(&r, 1))) {
            end_plain(r, status, 0, call.slot());
            *request = FM_REQUEST_NULL;
            return call.end();
        }
        note_some(1, &r, status, rc, call.slot());
        call.end();
    }
    return test_as_call(request, flag, status);
}

int fm_Waitall(int count, mpi::Request* requests, Status* statuses) {
    {
        DirectMessage call("MPI_Waitall", DirectMessage::kNotCareful);
        if (!call) return waitall_as_call(count, requests, statuses);
        if (count > 0 && wait_plain(call, count, requests, statuses)) return call.end();
        call.end();
    }
    return waitall_as_call(count, requests, statuses);
}

int fm_Testall(int count, mpi::Request* requests, int* flag, Status* statuses) {
    Call call("MPI_Testall");
    Temporary<RequestObject*, kOnStack> items(count > 0 ? count : 0);
    if (!look_up(count, requests, items.data())) return call.finish(FM_ERR_REQUEST);
    before_test(call);
    bool all = true;
    {
        // One lock and no early end: every operation makes progress.
        LockIfCareful guard(call.record());
        clock::Slot& slot = slot_of(call.record());
        for (int i = 0; i < count; i++)
            if (!ignored(items[i]) && !advance(items[i], slot)) {
                all = false;
                if (!careful_tier()) break;
            }
    }
    for (int i = 0; i < count && all; i++)
        if (!ignored(items[i])) all = may_tell(items[i], call.record(), false);
    *flag = all ? 1 : 0;
    if (!all) {
        poll_failed(call, items.data(), count);
        return 0;
    }
    poll_succeeded(call);
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
        if (consume(r, &requests[i], status) != 0) failed = FM_ERR_IN_STATUS;
    }
    return call.finish(comm, failed);
}

}  // extern "C"

namespace {

// Looks once at all of an array; the index of one that is complete and may be told, -1: none yet, -2: all
// ignored.
int any_complete(Call& call, int count, RequestObject** items) noexcept {
    bool active = false;
    for (int i = 0; i < count; i++) {
        if (ignored(items[i])) continue;
        active = true;
        if (test_one(call, items[i])) return i;
    }
    return active ? -1 : -2;
}

// The fast path of Waitany: one crossing. True when it found something complete (index), or nothing active.
bool wait_any_fast(Call& call, int count, RequestObject** items, int* index) noexcept {
    if (front.attention != 0) return false;
    Temporary<RealRequest, kOnStack> reals(count);
    bool active = false;
    for (int i = 0; i < count; i++) {
        RequestObject* r = items[i];
        if (ignored(r)) {
            reals[i] = RealRequest{};
        } else if (ordinary(r) && r->what != What::collective) {
            reals[i] = static_cast<RealRequest>(r->real);
            active = true;
        } else {
            return false;
        }
    }
    if (!active) {
        *index = -2;
        return true;
    }
    Status status{};
    int done = 0;
    int rc = LOWER(WaitAnySpin)(count, reals.data(), index, &status, &front.attention, &done);
    if (done == 0 || *index < 0 || *index >= count) return false;
    note_complete(items[*index], status, rc, slot_of(call.record()));
    return items[*index]->state == State::complete;
}

int wait_any(Call& call, int count, RequestObject** items) noexcept {
    int index = -1;
    if (wait_any_fast(call, count, items, &index)) return index;
    Waiter waiter(call);
    Waiter::Needs needs;
    needs.requests = items;
    needs.request_count = count;
    needs.any = true;
    for (;;) {
        Careful careful(call.record());
        index = any_complete(call, count, items);
        if (index != -1) return index;
        waiter.turn(needs);
    }
}

}  // namespace

extern "C" {

int fm_Waitany(int count, mpi::Request* requests, int* index, Status* status) {
    Call call("MPI_Waitany");
    call.record()->waiting_for = -2;
    Temporary<RequestObject*, kOnStack> items(count > 0 ? count : 0);
    if (!look_up(count, requests, items.data())) return call.finish(FM_ERR_REQUEST);
    int i = wait_any(call, count, items.data());
    if (i < 0) {
        *index = FM_UNDEFINED;
        empty_status(status);
        return 0;
    }
    *index = i;
    Comm comm = comm_of(items[i]);
    return call.finish(comm, consume(items[i], &requests[i], status));
}

int fm_Testany(int count, mpi::Request* requests, int* index, int* flag, Status* status) {
    Call call("MPI_Testany");
    Temporary<RequestObject*, kOnStack> items(count > 0 ? count : 0);
    if (!look_up(count, requests, items.data())) return call.finish(FM_ERR_REQUEST);
    before_test(call);
    int i = any_complete(call, count, items.data());
    *flag = i == -1 ? 0 : 1;
    *index = i < 0 ? FM_UNDEFINED : i;
    if (i == -1) {
        poll_failed(call, items.data(), count);
        return 0;
    }
    poll_succeeded(call);
    if (i < 0) {
        empty_status(status);
        return 0;
    }
    Comm comm = comm_of(items[i]);
    return call.finish(comm, consume(items[i], &requests[i], status));
}

}  // extern "C"

namespace {

// All that are complete now, told.
int some(Call& call, int count, mpi::Request* requests, RequestObject** items, int* outcount, int* indices,
         Status* statuses, Comm* comm, bool* active) noexcept {
    int found = 0, failed = 0;
    *active = false;
    for (int i = 0; i < count; i++) {
        RequestObject* r = items[i];
        if (ignored(r)) continue;
        *active = true;
        if (!test_one(call, r)) continue;
        if (r->error != 0 && failed == 0) *comm = comm_of(r);
        if (consume(r, &requests[i], statuses != nullptr ? &statuses[found] : nullptr) != 0)
            failed = FM_ERR_IN_STATUS;
        indices[found++] = i;
    }
    *outcount = found == 0 && !*active ? FM_UNDEFINED : found;
    return failed;
}

}  // namespace

extern "C" {

int fm_Waitsome(int count, mpi::Request* requests, int* outcount, int* indices, Status* statuses) {
    Call call("MPI_Waitsome");
    call.record()->waiting_for = -2;
    Temporary<RequestObject*, kOnStack> items(count > 0 ? count : 0);
    if (!look_up(count, requests, items.data())) return call.finish(FM_ERR_REQUEST);
    wait_any(call, count, items.data());
    Comm comm = FM_COMM_SELF;
    bool active;
    int rc = some(call, count, requests, items.data(), outcount, indices, statuses, &comm, &active);
    return call.finish(comm, rc);
}

int fm_Testsome(int count, mpi::Request* requests, int* outcount, int* indices, Status* statuses) {
    Call call("MPI_Testsome");
    Temporary<RequestObject*, kOnStack> items(count > 0 ? count : 0);
    if (!look_up(count, requests, items.data())) return call.finish(FM_ERR_REQUEST);
    before_test(call);
    Comm comm = FM_COMM_SELF;
    bool active;
    int rc = some(call, count, requests, items.data(), outcount, indices, statuses, &comm, &active);
    if (*outcount == 0)
        poll_failed(call, items.data(), count);
    else
        poll_succeeded(call);
    return call.finish(comm, rc);
}

int fm_Request_get_status(mpi::Request request, int* flag, Status* status) {
    Call call("MPI_Request_get_status");
    RequestObject* r = find_request(request);
    if (r == nullptr && request != FM_REQUEST_NULL) return call.finish(FM_ERR_REQUEST);
    if (ignored(r)) {
        *flag = 1;
        empty_status(status);
        return 0;
    }
    before_test(call);
    *flag = test_one(call, r) ? 1 : 0;
    if (*flag == 0) {
        poll_failed(call, &r, 1);
        return 0;
    }
    poll_succeeded(call);
    int rc = 0;
    if (r->what == What::generalized && r->generalized->query != nullptr)
        rc = r->generalized->query(r->generalized->query_fn, r->generalized->extra_state, &r->status);
    if (status != nullptr) *status = r->status;
    return call.finish(rc);
}

int fm_Request_get_status_all(int count, const mpi::Request* requests, int* flag, Status* statuses) {
    *flag = 1;
    for (int i = 0; i < count; i++) {
        int one = 0;
        int rc = fm_Request_get_status(requests[i], &one, statuses != nullptr ? &statuses[i] : nullptr);
        if (rc != 0) return rc;
        if (one == 0) *flag = 0;
    }
    return 0;
}

int fm_Request_get_status_any(int count, const mpi::Request* requests, int* index, int* flag,
                              Status* status) {
    bool active = false;
    for (int i = 0; i < count; i++) {
        if (ignored(find_request(requests[i]))) continue;
        active = true;
        int rc = fm_Request_get_status(requests[i], flag, status);
        if (rc != 0 || *flag != 0) {
            *index = i;
            return rc;
        }
    }
    *index = FM_UNDEFINED;
    *flag = active ? 0 : 1;
    if (!active) empty_status(status);
    return 0;
}

int fm_Request_get_status_some(int count, const mpi::Request* requests, int* outcount, int* indices,
                               Status* statuses) {
    bool active = false;
    int found = 0;
    for (int i = 0; i < count; i++) {
        if (ignored(find_request(requests[i]))) continue;
        active = true;
        int flag = 0;
        int rc = fm_Request_get_status(requests[i], &flag, statuses != nullptr ? &statuses[found] : nullptr);
        if (rc != 0) return rc;
        if (flag != 0) indices[found++] = i;
    }
    *outcount = active ? found : FM_UNDEFINED;
    return 0;
}

int fm_Request_free(mpi::Request* request) {
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

namespace {

int start_one(Call& call, RequestObject* r) noexcept {
    if (r == nullptr || (r->flags & kPersistent) == 0 || r->state != State::inactive) return FM_ERR_REQUEST;
    clock::Slot& slot = slot_of(call.record());
    int rc;
    r->error = 0;
    r->real = 0;
    r->state = State::active;
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

int fm_Grequest_start(void* query_fn, GrequestQueryAdapter query, void* free_fn, GrequestFreeAdapter free,
                      void* cancel_fn, GrequestCancelAdapter cancel, void* extra_state,
                      mpi::Request* request) {
    Call call("MPI_Grequest_start");
    RequestObject* r = new_request(What::generalized);
    empty_status(&r->status);
    r->generalized =
        fm_new<Generalized>(Generalized{query_fn, query, free_fn, free, cancel_fn, cancel, extra_state, 0});
    *request = handle_of(r);
    return 0;
}

void fm_grequest_is_fortran(mpi::Request request, GrequestQueryAdapter query, GrequestFreeAdapter free,
                            GrequestCancelAdapter cancel) {
    Call call("MPII_Grequest_set_lang_f77");
    RequestObject* r = find_request(request);
    if (r == nullptr || r->what != What::generalized) return;
    r->generalized->query = query;
    r->generalized->free = free;
    r->generalized->cancel = cancel;
}

int fm_Grequest_complete(mpi::Request request) {
    Call call("MPI_Grequest_complete");
    RequestObject* r = find_request(request);
    if (r == nullptr || r->what != What::generalized) return call.finish(FM_ERR_REQUEST);
    __atomic_store_n(&r->generalized->done, 1, __ATOMIC_RELEASE);
    if ((r->flags & kOrphan) != 0) consume(r, nullptr, nullptr);
    return 0;
}

}  // extern "C"

}  // namespace fermata::front
