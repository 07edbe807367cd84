// Wait, Test and Waitall.
//
// The translated tier hands the whole array of real requests to the lower half in one crossing. Anything that
// is not an operation of the lower half's own (a drained receive, a generalized request, a part of a pair) is
// looked at by itself.
#include "front/requests/completion.h"
#include "front/requests/nonblocking.h"

namespace fermata::front {

namespace {

// An operation that the lower half works on, with nothing to do at its end but counting.
__attribute__((always_inline)) inline bool may_be_translated(const RequestObject* r) noexcept {
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
__attribute__((always_inline)) inline void end_translated(RequestObject* r, const Status* statuses, int at,
                                                          clock::Slot& slot) noexcept {
    if (r->what == What::recv)
        count_received(
            slot, __builtin_expect(r->world >= 0, 1) ? r->world : r->comm->world_of(statuses[at].source));
    release_request(r);
}

// The request of a handle if it may be translated and the lower half's waits may have it without a status of
// ours; null otherwise. `collective`: set when it is one.
__attribute__((always_inline)) inline RequestObject* find_translated(mpi::Request handle, bool blind,
                                                                     bool* collective) noexcept {
    auto* r = static_cast<RequestObject*>(find_dynamic(static_cast<uint32_t>(handle), Kind::request));
    if (__builtin_expect(r == nullptr || r->real == 0, 0)) return nullptr;
    const uint32_t head = word_of(r);
    if (head == head_word(What::send, State::active)) return r;
    if (head == head_word(What::recv, State::active) && (!blind || r->world >= 0)) return r;
    if (!may_be_translated(r) || (blind && !status_unneeded(r))) return nullptr;
    *collective = true;
    return r;
}

// Notes for the Call what a wait or test of the lower half leaves that gave up, failed, or ended collectives
// that may not be told yet: `next` have ended. Without statuses MPI says only that one of them failed; so
// each that may have is marked.
__attribute__((noinline)) void note_some(int next, RequestObject* const* items, const Status* statuses,
                                         int rc, clock::Slot& slot) noexcept {
    static constexpr Status none{};
    for (int i = 0; i < next; i++)
        if (items[i] != nullptr)
            note_complete(items[i], statuses != nullptr ? statuses[i] : none,
                          statuses != nullptr ? statuses[i].error : rc, slot);
}

// One request that may be translated. False: it is left to the Call.
__attribute__((always_inline)) inline bool wait_one(const DirectMessage& call, RequestObject* r,
                                                    bool collective, Status* status) noexcept {
    int rc = call.lower(front.table->WaitOneSpin, real_request(r), status, &front.attention);
    call.rise();
    if (__builtin_expect(rc != 0, 0) || (collective && !may_tell_now(&r, 1))) {
        note_some(rc < 0 ? 0 : 1, &r, status, rc, call.slot());
        return false;
    }
    end_translated(r, status, 0, call.slot());
    return true;
}

// One crossing for requests of which each may be translated. False: some (or all) are left to the Call.
__attribute__((always_inline)) inline bool wait_translated(const DirectMessage& call, int count,
                                                           mpi::Request* handles, Status* statuses) noexcept {
    if (__builtin_expect(count > kOnStack, 0)) return false;
    RequestObject* items[kOnStack];
    RealRequest reals[kOnStack];
    bool collectives = false;
    for (int i = 0; i < count; i++) {
        RequestObject* r = find_translated(handles[i], statuses == nullptr, &collectives);
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
        end_translated(items[i], statuses, i, slot);
        handles[i] = FM_REQUEST_NULL;
    }
    return true;
}

__attribute__((noinline)) int wait_all(Call& call, int count, mpi::Request* requests,
                                       Status* statuses) noexcept {
    Temporary<RequestObject*, kOnStack> items(count);
    if (!look_up(count, requests, items.data())) return call.finish(FM_ERR_REQUEST);

    if (logged::on()) {
        logged::wait_all(call, items.data(), count);
        return consume_all(call, count, requests, items.data(), statuses);
    }
    bool library_may_wait_for_all = true;
    bool blind = statuses == nullptr;  // nobody will look at a status, we neither
    Temporary<RealRequest, kOnStack> reals(count);
    for (int i = 0; i < count; i++) {
        RequestObject* r = items[i];
        if (r == nullptr) {
            reals[i] = RealRequest{};
        } else if (__builtin_expect(library_may_wait(r), 1)) {
            reals[i] = static_cast<RealRequest>(r->real);
            blind = blind && status_unneeded(r);
        } else {
            library_may_wait_for_all = false;
            break;
        }
    }
    if (library_may_wait_for_all && front.attention == 0) {
        clock::Slot& slot = slot_of(call.record());
        int next = 0;
        Temporary<Status, kOnStack> own(statuses == nullptr && !blind ? count : 0);
        Status* out = blind ? nullptr : statuses != nullptr ? statuses : own.data();
        int rc = LOWER(WaitSpin)(count, reals.data(), out, &front.attention, &next);
        note_some(next, items.data(), out, rc, slot);
        // Those after `next` are untouched: the loop below takes over.
    }
    // An open one is waited for alone; the others make progress meanwhile.
    for (int i = 0; i < count; i++) {
        RequestObject* r = items[i];
        if (ignored(r) || (r->state == State::complete && r->what != What::collective)) continue;
        wait_complete(call, r, items.data(), count);
    }
    return consume_all(call, count, requests, items.data(), statuses);
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
    if (logged::on())
        logged::wait_all(call, &r, 1);
    else
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
    if (logged::on() ? !logged::test_all(call, &r, 1) : !test_one(call, r)) {
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
        RequestObject* const r = find_translated(*request, status == nullptr, &collective);
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
        RequestObject* const r = find_translated(*request, status == nullptr, &collective);
        if (__builtin_expect(r == nullptr, 0)) {
            call.give_up();
            return test_as_call(request, flag, status);
        }
        int rc = call.lower(front.table->Test, real_request(r), flag, status);
        if (rc == 0 && *flag == 0) return call.end();
        call.rise();
        if (__builtin_expect(rc == 0, 1) && (!collective || may_tell_now(&r, 1))) {
            end_translated(r, status, 0, call.slot());
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
        if (count > 0 && wait_translated(call, count, requests, statuses)) return call.end();
        call.end();
    }
    return waitall_as_call(count, requests, statuses);
}

}  // extern "C"

}  // namespace fermata::front
