// How the program hears that something is complete: one record for each call that says so.
#include "front/core/sys.h"
#include "front/logged/state.h"
#include "front/objects/objects.h"

namespace fermata::front::logged {
namespace {

using replay::CallKind;
using replay::Outcome;

bool is_logged(const RequestObject* r) noexcept { return r->posted != 0; }

// The operations that a request of the program consists of.
template <typename F>
bool all_parts(RequestObject* r, const F& good) noexcept {
    if (r->what != What::sendrecv) return good(r);
    const bool received = good(r->pair->recv);
    return good(r->pair->send) && received;
}

bool all_ready(RequestObject* r) noexcept {
    if (ignored(r)) return true;
    return all_parts(r, [](RequestObject* one) { return ready(one); });
}

void name(RequestObject* r, Outcome* outcome) noexcept {
    if (ignored(r)) return;
    all_parts(r, [outcome](RequestObject* one) {
        if (is_logged(one)) outcome->told.push_back(number_of(one));
        return true;
    });
}

// The request of the program is over once its parts are.
void settle(RequestObject* r) noexcept {
    if (ignored(r) || r->what != What::sendrecv || r->state != State::active) return;
    r->status = r->pair->recv->status;
    r->error = r->pair->recv->error != 0 ? r->pair->recv->error : r->pair->send->error;
    r->state = State::complete;
}

// Blocks inside the library as long as nothing else needs a turn.
void wait_below(RequestObject* r) noexcept {
    const Log& log = the_log();
    if (!log.debts.empty() || !log.again.empty() || !log.left.empty() || front.attention != 0) return;
    if (r->what != What::send && r->what != What::recv) return;
    if (r->real == 0 || r->state != State::active) return;
    int next = 0;
    mpi::Status status{};
    const int rc = LOWER(WaitSpin)(1, real_request(r), &status, &front.attention, &next);
    if (next != 1) return;
    r->real = 0;
    r->status = status;
    r->error = rc;
    if (r->what == What::send)
        machine().completed(number_of(r));
    else
        machine().received(number_of(r),
                           {rank_of(r->comm->world_of(status.source)), tag_of(status.tag)});
}

// Others may need this rank's part still. (A persistent one's is used again: the log gets a copy.)
void keep_part(RequestObject* r) noexcept {
    Part* part = r->collective->part;
    if (machine().logged(uid_of(*r->comm), part->instance) == nullptr) return;
    if ((r->flags & kPersistent) != 0)
        part = copy_of(*part);
    else
        r->collective->part = nullptr;
    if (!r->comm->predefined) comm_ref(r->comm);
    the_log().kept.push_back({uid_of(*r->comm), part->instance, part, r->comm});
}

}  // namespace

void Rounds::next() noexcept {
    if ((front.careful & kFrozen) != 0 || call_.record()->stop != 0) {
        if (call_.stop_point()) {
            turns_ = 0;
            return;
        }
    }
    progress();
    if (++turns_ < 64)
        cpu_pause();
    else
        yield_cpu();
}

bool ready(RequestObject* r) noexcept {
    if (!is_logged(r)) {
        if (r->state == State::complete) return true;
        SpinGuard guard(library_lock);
        return advance(r, slot_of(split::this_thread()));
    }
    for (;;) {
        const auto missing = machine().missing(number_of(r));
        if (!missing) return true;
        if (!look_at(*missing)) return false;
    }
}

void tell(Outcome outcome, RequestObject* const* requests, int count) noexcept {
    Log& log = the_log();
    log.machine.tell(std::move(outcome));
    for (int i = 0; i < count; i++) {
        RequestObject* r = requests[i];
        if (ignored(r)) continue;
        all_parts(r, [&log](RequestObject* one) {
            if (!is_logged(one)) return true;
            if (one->what == What::collective) keep_part(one);
            Vec<RequestObject*>& open = log.open;
            for (size_t at = open.size(); at-- > 0;)
                if (open[at] == one) {
                    open.erase(open.begin() + static_cast<ptrdiff_t>(at));
                    break;
                }
            one->posted = 0;
            one->state = State::complete;
            return true;
        });
        settle(r);
    }
    if ((++log.told & 63) == 0) exchange_receipts();
}

void wait_for(Call& call, RequestObject* r) noexcept {
    Rounds rounds(call);
    while (!ready(r)) {
        wait_below(r);
        if (!ready(r)) rounds.next();
    }
}

void until_may_send(Call& call) noexcept {
    Rounds rounds(call);
    while (!machine().may_send()) rounds.next();
}
void until_may_call(Call& call) noexcept {
    Rounds rounds(call);
    while (!machine().may_start_collective()) rounds.next();
}

int run_blocking(Call& call, RequestObject* r, mpi::Status* status) noexcept {
    r->flags |= kInternal;
    machine().enter();
    if (int rc = begin(call, r); rc != 0) return rc;
    wait_for(call, r);
    Outcome outcome{.kind = r->what == What::send ? CallKind::send : CallKind::receive};
    name(r, &outcome);
    if (is_logged(r)) tell(std::move(outcome), &r, 1);
    return consume(r, nullptr, status);
}

int sendrecv(Call& call, RequestObject* send, RequestObject* receive, mpi::Status* status) noexcept {
    machine().enter();
    int rc = begin(call, receive);
    if (rc != 0) {
        release_request(send);
        return rc;
    }
    rc = begin(call, send);
    if (rc != 0) refuse("an MPI_Sendrecv whose send the library refuses");
    RequestObject* const both[] = {receive, send};
    wait_for(call, receive);
    wait_for(call, send);
    while (!ready(receive)) wait_for(call, receive);  // a new lower half may have come in between
    Outcome outcome{.kind = CallKind::wait};
    for (RequestObject* r : both) name(r, &outcome);
    if (!outcome.told.empty()) tell(std::move(outcome), both, 2);
    const int send_error = consume(send, nullptr, nullptr);
    const int receive_error = consume(receive, nullptr, status);
    return receive_error != 0 ? receive_error : send_error;
}

void wait_all(Call& call, RequestObject* const* requests, int count) noexcept {
    machine().enter();
    Rounds rounds(call);
    for (bool all = false; !all;) {
        all = true;
        for (int i = 0; i < count; i++) {
            if (all_ready(requests[i])) continue;
            all = false;
            all_parts(requests[i], [](RequestObject* one) {
                wait_below(one);
                return true;
            });
            if (!all_ready(requests[i])) break;
        }
        if (!all) rounds.next();
    }
    Outcome outcome{.kind = CallKind::wait};
    for (int i = 0; i < count; i++) name(requests[i], &outcome);
    if (!outcome.told.empty()) tell(std::move(outcome), requests, count);
    for (int i = 0; i < count; i++)
        if (requests[i] != nullptr) settle(requests[i]);
}

bool test_all(Call&, RequestObject* const* requests, int count) noexcept {
    machine().enter();
    progress();
    Outcome outcome{.kind = CallKind::choice};
    for (int i = 0; i < count; i++)
        if (!all_ready(requests[i])) outcome.flag = false;
    if (outcome.flag)
        for (int i = 0; i < count; i++) name(requests[i], &outcome);
    const bool all = outcome.flag;
    tell(std::move(outcome), requests, all ? count : 0);
    return all;
}

namespace {

// The place of one that is complete; -1: none, and `active` says whether there is any.
int any_ready(RequestObject* const* requests, int count, bool* active) noexcept {
    *active = false;
    for (int i = 0; i < count; i++) {
        if (ignored(requests[i])) continue;
        *active = true;
        if (all_ready(requests[i])) return i;
    }
    return -1;
}

void tell_one(RequestObject* const* requests, int at) noexcept {
    Outcome outcome{.kind = CallKind::choice};
    outcome.flag = at >= 0;
    outcome.index = at;
    if (at >= 0) name(requests[at], &outcome);
    tell(std::move(outcome), at >= 0 ? &requests[at] : nullptr, at >= 0 ? 1 : 0);
}

// Marks those that are complete; how many.
int some_ready(RequestObject* const* requests, int count, bool* done, bool* active) noexcept {
    int found = 0;
    *active = false;
    for (int i = 0; i < count; i++) {
        done[i] = false;
        if (ignored(requests[i])) continue;
        *active = true;
        if (!all_ready(requests[i])) continue;
        done[i] = true;
        found++;
    }
    return found;
}

void tell_some(RequestObject* const* requests, int count, const bool* done) noexcept {
    Outcome outcome{.kind = CallKind::choice};
    Vec<RequestObject*> told;
    for (int i = 0; i < count; i++) {
        if (!done[i]) continue;
        name(requests[i], &outcome);
        told.push_back(requests[i]);
    }
    outcome.flag = !told.empty();
    tell(std::move(outcome), told.data(), static_cast<int>(told.size()));
}

}  // namespace

int wait_any(Call& call, RequestObject* const* requests, int count) noexcept {
    machine().enter();
    Rounds rounds(call);
    bool active = false;
    int at = -1;
    while ((at = any_ready(requests, count, &active)) < 0 && active) rounds.next();
    if (active) tell_one(requests, at);
    return at;
}

int test_any(Call&, RequestObject* const* requests, int count) noexcept {
    machine().enter();
    progress();
    bool active = false;
    const int at = any_ready(requests, count, &active);
    if (active) tell_one(requests, at);
    return at;
}

void wait_some(Call& call, RequestObject* const* requests, int count, bool* done) noexcept {
    machine().enter();
    Rounds rounds(call);
    bool active = false;
    while (some_ready(requests, count, done, &active) == 0 && active) rounds.next();
    if (active) tell_some(requests, count, done);
}

void test_some(Call&, RequestObject* const* requests, int count, bool* done) noexcept {
    machine().enter();
    progress();
    bool active = false;
    some_ready(requests, count, done, &active);
    if (active) tell_some(requests, count, done);
}

}  // namespace fermata::front::logged
