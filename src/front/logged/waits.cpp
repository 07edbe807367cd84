// How the program hears that something is complete: one record for each call that says so.
#include "base/kill_point.h"
#include "front/core/bridge.h"
#include "front/core/sys.h"
#include "front/logged/state.h"
#include "front/objects/objects.h"

namespace fermata::front::logged {
namespace {

using replay::CallKind;
using replay::Outcome;

// A sender's log shall not become full because this rank has said nothing.
constexpr uint64_t kPartForReceipts = 16;

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

bool is_open_receive(const RequestObject* r) noexcept {
    return r->what == What::recv && is_logged(r) && r->state == State::active;
}

// Blocks inside the library as long as nothing else needs a turn: not while synchronous senders may wait to
// hear that a message was taken, one that was told or one of another open receive.
void wait_below(RequestObject* r) noexcept {
    const Log& log = the_log();
    if (log.consumed != 0 || !log.on_way.empty()) return;
    for (const RequestObject* other : log.open)
        if (other != r && is_open_receive(other)) return;
    if (!log.debts.empty() || !log.again.empty() || !log.left.empty() || front.attention != 0) return;
    if (!is_logged(r) || r->real == 0 || r->state != State::active) return;
    int next = 0;
    mpi::Status status{};
    const int rc = LOWER(WaitSpin)(1, real_request(r), &status, &front.attention, &next);
    if (next != 1) return;
    note_ended(r, status, rc);
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
    see_whether_it_was_replaced();
    hear_what_is_stable();
    say_what_was_consumed(turns_);
    if (++turns_ < 64)
        cpu_pause();
    else
        yield_cpu();
}

void harvest() noexcept {
    Log& log = the_log();
    if (!log.machine.may_tell()) return;
    for (RequestObject* r : log.open)
        if (is_open_receive(r)) ready(r);
    if (!log.machine.can_harvest()) return;
    publish(log.machine.harvest());
    log.consumed++;
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

void tell(const Outcome& outcome) noexcept {
    Log& log = the_log();
    const replay::Record record = log.machine.tell(outcome);
    kill_point("told.before_stream", static_cast<long>(outcome.kind));
    publish(record);
    kill_point("told.in_stream", static_cast<long>(outcome.kind));
    bool consumed = false;
    for (replay::RequestNo no : outcome.told)
        if (const RequestObject* r = find(no); r != nullptr && r->what == What::recv) {
            consumed = true;
            log.consumed_bytes += static_cast<uint64_t>(r->status.count);
        }
    log.consumed += consumed ? 1 : 0;
    const bool much = log.consumed_bytes >= bridge()->log_bytes / kPartForReceipts;
    if ((++log.told & 63) == 0 || much || log.asked) exchange_receipts();
    if (machine().log_lacks(0) != 0) keep_within_bound();
}

void close_told(const Outcome& outcome, RequestObject* const* requests, int count) noexcept {
    Log& log = the_log();
    const auto was_told = [&outcome](const RequestObject* one) {
        for (replay::RequestNo no : outcome.told)
            if (no == number_of(one)) return true;
        return false;
    };
    for (int i = 0; i < count; i++) {
        RequestObject* r = requests[i];
        if (ignored(r)) continue;
        all_parts(r, [&](RequestObject* one) {
            if (!is_logged(one) || !was_told(one)) return true;
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
        if (r->what == What::sendrecv && r->pair->send->state == State::complete &&
            r->pair->recv->state == State::complete)
            settle(r);
    }
}

void until_may_send(Call& call) noexcept {
    Rounds rounds(call);
    hear_what_is_stable();
    while (!machine().may_send()) {
        kill_point("send.not_stable");
        rounds.next();
    }
    kill_point("send.stable");
}
void until_may_call(Call& call) noexcept {
    Rounds rounds(call);
    hear_what_is_stable();
    while (!machine().may_start_collective()) {
        kill_point("collective.not_stable");
        rounds.next();
    }
}

// Those that are complete from the start are told by nobody.
int run_blocking(Call& call, RequestObject* r, mpi::Status* status) noexcept {
    const OneThread alone(call);
    r->flags |= kInternal;
    machine().enter();
    if (int rc = begin(call, r); rc != 0) return rc;
    if (is_logged(r))
        resolve(call, r->what == What::send ? CallKind::send : CallKind::receive, &r, 1,
                [r]() -> std::optional<Outcome> {
                    if (!ready(r)) wait_below(r);
                    if (!ready(r)) return {};
                    Outcome outcome{.kind = r->what == What::send ? CallKind::send : CallKind::receive};
                    name(r, &outcome);
                    return outcome;
                });
    return consume(r, nullptr, status);
}

namespace {

bool any_logged(RequestObject* const* requests, int count) noexcept {
    bool any = false;
    for (int i = 0; i < count; i++)
        if (!ignored(requests[i]))
            all_parts(requests[i], [&any](RequestObject* one) {
                any = any || is_logged(one);
                return true;
            });
    return any;
}

// Waits for all; those that the log does not know are complete, or of the library's own.
void wait_for_all(Call& call, RequestObject* const* requests, int count) noexcept {
    const auto all_are_ready = [&] {
        for (int i = 0; i < count; i++) {
            if (all_ready(requests[i])) continue;
            all_parts(requests[i], [](RequestObject* one) {
                wait_below(one);
                return true;
            });
            if (!all_ready(requests[i])) return false;
        }
        // A stop may have come in between, and another lower half.
        for (int i = 0; i < count; i++)
            if (!all_ready(requests[i])) return false;
        return true;
    };
    if (!any_logged(requests, count)) {
        for (Rounds rounds(call); !all_are_ready();) rounds.next();
        return;
    }
    resolve(call, CallKind::wait, requests, count, [&]() -> std::optional<Outcome> {
        if (!all_are_ready()) return {};
        Outcome outcome{.kind = CallKind::wait};
        for (int i = 0; i < count; i++) name(requests[i], &outcome);
        return outcome;
    });
}

}  // namespace

int sendrecv(Call& call, RequestObject* send, RequestObject* receive, mpi::Status* status) noexcept {
    const OneThread alone(call);
    machine().enter();
    int rc = begin(call, receive);
    if (rc != 0) {
        release_request(send);
        return rc;
    }
    rc = begin(call, send);
    if (rc != 0) refuse("an MPI_Sendrecv whose send the library refuses");
    RequestObject* const both[] = {receive, send};
    wait_for_all(call, both, 2);
    const int send_error = consume(send, nullptr, nullptr);
    const int receive_error = consume(receive, nullptr, status);
    return receive_error != 0 ? receive_error : send_error;
}

void wait_all(Call& call, RequestObject* const* requests, int count) noexcept {
    const OneThread alone(call);
    machine().enter();
    wait_for_all(call, requests, count);
    for (int i = 0; i < count; i++)
        if (requests[i] != nullptr) settle(requests[i]);
}

bool test_all(Call& call, RequestObject* const* requests, int count) noexcept {
    const OneThread alone(call);
    machine().enter();
    if (is_live()) progress();
    const Outcome outcome = resolve(call, CallKind::choice, requests, count, [&] {
        Outcome found{.kind = CallKind::choice};
        for (int i = 0; i < count; i++)
            if (!all_ready(requests[i])) found.flag = false;
        if (found.flag)
            for (int i = 0; i < count; i++) name(requests[i], &found);
        return std::optional(found);
    });
    return outcome.flag;
}

namespace {

// The place of one that is complete; -1: none.
int any_ready(RequestObject* const* requests, int count) noexcept {
    for (int i = 0; i < count; i++)
        if (!ignored(requests[i]) && all_ready(requests[i])) return i;
    return -1;
}
bool any_active(RequestObject* const* requests, int count) noexcept {
    for (int i = 0; i < count; i++)
        if (!ignored(requests[i])) return true;
    return false;
}

int choose_one(Call& call, RequestObject* const* requests, int count, bool waits) noexcept {
    const OneThread alone(call);
    machine().enter();
    if (is_live()) progress();
    if (!any_active(requests, count)) return -1;
    const Outcome outcome = resolve(call, CallKind::choice, requests, count, [&]() -> std::optional<Outcome> {
        Outcome found{.kind = CallKind::choice};
        const int at = any_ready(requests, count);
        if (at < 0 && waits) return {};
        found.flag = at >= 0;
        found.index = at;
        if (at >= 0) name(requests[at], &found);
        return found;
    });
    return static_cast<int>(outcome.index);
}

// Marks those that are complete: the record names them, or (what the log does not know) all alike.
void choose_some(Call& call, RequestObject* const* requests, int count, bool waits, bool* done) noexcept {
    const OneThread alone(call);
    machine().enter();
    if (is_live()) progress();
    for (int i = 0; i < count; i++) done[i] = false;
    if (!any_active(requests, count)) return;
    resolve(call, CallKind::choice, requests, count, [&]() -> std::optional<Outcome> {
        Outcome found{.kind = CallKind::choice};
        bool any = false;
        for (int i = 0; i < count; i++) {
            if (ignored(requests[i]) || !all_ready(requests[i])) continue;
            any = true;
            name(requests[i], &found);
        }
        if (!any && waits) return {};
        found.flag = any;
        return found;
    });
    for (int i = 0; i < count; i++)
        if (!ignored(requests[i])) done[i] = requests[i]->state == State::complete;
}

}  // namespace

int wait_any(Call& call, RequestObject* const* requests, int count) noexcept {
    return choose_one(call, requests, count, true);
}
int test_any(Call& call, RequestObject* const* requests, int count) noexcept {
    return choose_one(call, requests, count, false);
}
void wait_some(Call& call, RequestObject* const* requests, int count, bool* done) noexcept {
    choose_some(call, requests, count, true, done);
}
void test_some(Call& call, RequestObject* const* requests, int count, bool* done) noexcept {
    choose_some(call, requests, count, false, done);
}

}  // namespace fermata::front::logged
