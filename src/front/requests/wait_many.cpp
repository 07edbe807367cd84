// Testall, and waits and tests for any or some of many.
#include "front/requests/completion.h"

namespace fermata::front {

namespace {

// The result of a look at all of an array.
struct Found {
    enum class Is { nothing_active, none_complete, complete };
    Is is;
    int index = -1;  // of one that is complete and may be told
};
using Is = Found::Is;

Found logged_found(int count, RequestObject** items, int at) noexcept {
    if (at >= 0) return {Is::complete, at};
    for (int i = 0; i < count; i++)
        if (!ignored(items[i])) return {Is::none_complete};
    return {Is::nothing_active};
}

// Looks once at all of an array.
Found any_complete(Call& call, int count, RequestObject** items) noexcept {
    if (logged::on()) return logged_found(count, items, logged::test_any(call, items, count));
    bool active = false;
    for (int i = 0; i < count; i++) {
        if (ignored(items[i])) continue;
        active = true;
        if (test_one(call, items[i])) return {Is::complete, i};
    }
    return {active ? Is::none_complete : Is::nothing_active};
}

// Any of an array, in one crossing. none_complete: a checkpoint is on its way, or the library may not have
// them all.
Found wait_any_translated(Call& call, int count, RequestObject** items) noexcept {
    if (front.attention != 0) return {Is::none_complete};
    Temporary<RealRequest, kOnStack> reals(count);
    bool active = false;
    for (int i = 0; i < count; i++) {
        RequestObject* r = items[i];
        if (ignored(r)) {
            reals[i] = RealRequest{};
        } else if (library_may_wait(r) && r->what != What::collective) {
            reals[i] = static_cast<RealRequest>(r->real);
            active = true;
        } else {
            return {Is::none_complete};
        }
    }
    if (!active) return {Is::nothing_active};
    Status status{};
    int done = 0, index = -1;
    int rc = LOWER(WaitAnySpin)(count, reals.data(), &index, &status, &front.attention, &done);
    if (done == 0 || index < 0 || index >= count) return {Is::none_complete};
    note_complete(items[index], status, rc, slot_of(call.record()));
    if (items[index]->state != State::complete) return {Is::none_complete};
    return {Is::complete, index};
}

// Waits for one of an array; nothing_active: there is none to wait for.
Found wait_any(Call& call, int count, RequestObject** items) noexcept {
    if (logged::on()) return logged_found(count, items, logged::wait_any(call, items, count));
    if (Found found = wait_any_translated(call, count, items); found.is != Is::none_complete) return found;
    Waiter waiter(call);
    Waiter::Needs needs;
    needs.requests = items;
    needs.request_count = count;
    needs.any = true;
    for (;;) {
        Careful careful(call.record());
        if (Found found = any_complete(call, count, items); found.is != Is::none_complete) return found;
        waiter.turn(needs);
    }
}

// All that are complete now, told.
// `waits`: for one at least.
int some(Call& call, int count, mpi::Request* requests, RequestObject** items, bool waits, int* outcount,
         int* indices, Status* statuses, Comm* comm, bool* active) noexcept {
    int found = 0, failed = 0;
    *active = false;
    const bool log = logged::on();
    Temporary<bool, kOnStack> told(log ? count : 0);
    if (log)
        (waits ? logged::wait_some : logged::test_some)(call, items, count, told.data());
    else if (waits)
        wait_any(call, count, items);
    for (int i = 0; i < count; i++) {
        RequestObject* r = items[i];
        if (ignored(r)) continue;
        *active = true;
        if (log ? !told[i] : !test_one(call, r)) continue;
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

int fm_Testall(int count, mpi::Request* requests, int* flag, Status* statuses) {
    Call call("MPI_Testall");
    Temporary<RequestObject*, kOnStack> items(count > 0 ? count : 0);
    if (!look_up(count, requests, items.data())) return call.finish(FM_ERR_REQUEST);
    before_test(call);
    bool all = true;
    if (logged::on()) {
        all = logged::test_all(call, items.data(), count);
    } else {
        // One lock and no early end: every operation makes progress.
        LockIfCareful guard(call.record());
        clock::Slot& slot = slot_of(call.record());
        for (int i = 0; i < count; i++)
            if (!ignored(items[i]) && !advance(items[i], slot)) {
                all = false;
                if (!careful_tier()) break;
            }
    }
    for (int i = 0; i < count && all && !logged::on(); i++)
        if (!ignored(items[i])) all = may_tell(items[i], call.record(), false);
    *flag = all ? 1 : 0;
    if (!all) {
        poll_failed(call, items.data(), count);
        return 0;
    }
    poll_succeeded(call);
    return consume_all(call, count, requests, items.data(), statuses);
}

int fm_Waitany(int count, mpi::Request* requests, int* index, Status* status) {
    Call call("MPI_Waitany");
    call.record()->waiting_for = kAnyOfMany;
    Temporary<RequestObject*, kOnStack> items(count > 0 ? count : 0);
    if (!look_up(count, requests, items.data())) return call.finish(FM_ERR_REQUEST);
    Found found = wait_any(call, count, items.data());
    if (found.is == Is::nothing_active) {
        *index = FM_UNDEFINED;
        empty_status(status);
        return 0;
    }
    const int i = *index = found.index;
    Comm comm = comm_of(items[i]);
    return call.finish(comm, consume(items[i], &requests[i], status));
}

int fm_Testany(int count, mpi::Request* requests, int* index, int* flag, Status* status) {
    Call call("MPI_Testany");
    Temporary<RequestObject*, kOnStack> items(count > 0 ? count : 0);
    if (!look_up(count, requests, items.data())) return call.finish(FM_ERR_REQUEST);
    before_test(call);
    Found found = any_complete(call, count, items.data());
    *flag = found.is == Is::none_complete ? 0 : 1;
    *index = found.is == Is::complete ? found.index : FM_UNDEFINED;
    if (found.is == Is::none_complete) {
        poll_failed(call, items.data(), count);
        return 0;
    }
    poll_succeeded(call);
    if (found.is == Is::nothing_active) {
        empty_status(status);
        return 0;
    }
    const int i = found.index;
    Comm comm = comm_of(items[i]);
    return call.finish(comm, consume(items[i], &requests[i], status));
}

int fm_Waitsome(int count, mpi::Request* requests, int* outcount, int* indices, Status* statuses) {
    Call call("MPI_Waitsome");
    call.record()->waiting_for = kAnyOfMany;
    Temporary<RequestObject*, kOnStack> items(count > 0 ? count : 0);
    if (!look_up(count, requests, items.data())) return call.finish(FM_ERR_REQUEST);
    Comm comm = FM_COMM_SELF;
    bool active;
    int rc = some(call, count, requests, items.data(), true, outcount, indices, statuses, &comm, &active);
    return call.finish(comm, rc);
}

int fm_Testsome(int count, mpi::Request* requests, int* outcount, int* indices, Status* statuses) {
    Call call("MPI_Testsome");
    Temporary<RequestObject*, kOnStack> items(count > 0 ? count : 0);
    if (!look_up(count, requests, items.data())) return call.finish(FM_ERR_REQUEST);
    before_test(call);
    Comm comm = FM_COMM_SELF;
    bool active;
    int rc = some(call, count, requests, items.data(), false, outcount, indices, statuses, &comm, &active);
    if (*outcount == 0)
        poll_failed(call, items.data(), count);
    else
        poll_succeeded(call);
    return call.finish(comm, rc);
}

}  // extern "C"

}  // namespace fermata::front
