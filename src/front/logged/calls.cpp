// Collective calls: their start, the form in which they go to the library, and their end.
#include "base/kill_point.h"
#include "front/core/fatal.h"
#include "front/logged/escape.h"
#include "front/logged/state.h"

namespace fermata::front::logged {
namespace {

using replay::CallKind;
using replay::Kind;
using replay::Outcome;
using replay::Stage;
using replay::Way;

RequestObject* request_for(CommObject* comm, CollectiveRecord* record, Part* part) noexcept {
    RequestObject* r = new_request(What::collective);
    r->comm = comm;
    if (!comm->predefined) comm_ref(comm);
    r->collective = record;
    record->part = part;
    return r;
}

// Gives it its number, and the form that the machine says.
void number(Call& call, RequestObject* r) noexcept {
    if (r->comm->inter) refuse("intercommunicators");
    Part& part = *r->collective->part;
    until_may_call(call);
    Log& log = the_log();
    log.starting = r;
    std::optional<replay::Take> take;
    const replay::Request& started = log.machine.start_collective(uid_of(*r->comm), part.arguments, &take);
    part.outside = take.has_value();
    part.instance = started.collective()->instance;
    part.planned = log.machine.find(uid_of(*r->comm))->planned(part.instance) != nullptr;
    if (take) {
        part.way = take->way;
        part.from = take->from;
    }
    enter_open(r, started.no);
    r->real = 0;
    r->state = State::active;
}

// Its number can be found again when the library refuses the call: nobody has been told.
[[noreturn]] void refused_below(const RequestObject* r) noexcept {
    const char* pieces[] = {"fermata: the library refuses a collective call that is in the message log: ",
                            r->collective->name, nullptr};
    fatal_join(pieces);
}

void issue_if_outside(RequestObject* r) noexcept {
    Part& part = *r->collective->part;
    if (!part.outside || part.way == Way::native) return;
    part.outside = false;
    machine().issued(number_of(r));
    const int rc = issue_call(r);
    if (rc == 0) return;
    r->real = 0;
    if (!library_fails(r->collective->name, rc)) refused_below(r);
}

// Others may wait to hear that this rank's receives have their messages, or are sure to take them, before
// they come here: nobody says so from inside the library.
void say_what_is_taken() noexcept {
    const Log& log = the_log();
    bool wanted = log.consumed != 0;
    for (const RequestObject* one : log.open) wanted = wanted || one->what == What::recv;
    if (wanted) exchange_receipts();
}

// The library's blocking call, from which the thread may be brought back.
void call_native(Call& call, RequestObject* r, const Native& native) noexcept {
    say_what_is_taken();
    Part& part = *r->collective->part;
    part.outside = false;
    machine().issued(number_of(r));
    split::ThreadRecord* record = call.record();
    int rc = 0;
    kill_point("collective.before", static_cast<long>(part.arguments.kind));
    const bool returned = escapable(record, [&] { rc = native.call(native.context); });
    if (!returned) return;  // `part` says what is to be done now
    kill_point("collective.after", static_cast<long>(part.arguments.kind));
    note_ended(r, {}, rc);
}

}  // namespace

// A form that the machine calls a twin is the program's own non-blocking call, but for those that some
// members were told: all of these take part with bytes.
int issue_call(RequestObject* r) noexcept {
    Part& part = *r->collective->part;
    if (!goes_on_bytes(part)) {
        if (part.arguments.overwrites) {
            replay::Bytes input;
            machine().input_of(number_of(r), &input);
            put_input(part, input);
        }
        return r->collective->issue(r->collective, real_of(r->comm), real_request(r));
    }
    part.given.clear();
    machine().input_of(number_of(r), &part.given);
    return issue_on_bytes(part, *r->comm, {}, real_request(r));
}

void call_ended(RequestObject* r, int rc) noexcept {
    Part& part = *r->collective->part;
    r->real = 0;
    r->error = rc;
    empty_status(&r->status);
    if (rc != 0) refused_below(r);
    const bool on_bytes = goes_on_bytes(part);
    if (part.arguments.kind == Kind::create) {
        if (on_bytes) made_by_plan(r);
        machine().completed(number_of(r),
                            part.made != nullptr ? std::optional<replay::Made>(made_of(r)) : std::nullopt);
        return;
    }
    if (on_bytes) put_result(part, *r->comm, part.room.data(), static_cast<int64_t>(part.room.size()));
    machine().completed(number_of(r));
}

namespace {

// Waits for a blocking one and tells it.
void see_through(Call& call, RequestObject* r, const Native& native) noexcept {
    Part& part = *r->collective->part;
    CommObject*& made = the_log().made;
    made = nullptr;
    resolve(call, CallKind::collective, &r, 1, [&]() -> std::optional<Outcome> {
        if (part.outside && part.way == Way::native) call_native(call, r, native);
        issue_if_outside(r);
        if (!ready(r)) return {};
        made = part.made;  // the part may be the log's from now on
        part.made = nullptr;
        Outcome outcome{.kind = CallKind::collective};
        outcome.told.push_back(number_of(r));
        return outcome;
    });
}

}  // namespace

int collective(Call& call, CommObject* comm, Part* part, CollectiveRecord* twin, Native native) noexcept {
    const OneThread alone(call);
    machine().enter();
    finish_part(part);
    RequestObject* r = request_for(comm, twin, part);
    r->flags |= kInternal;
    number(call, r);
    see_through(call, r, native);
    return consume(r, nullptr, nullptr);
}

int begin_collective(Call& call, CommObject* comm, Part* part, CollectiveRecord* record,
                     mpi::Request* request) noexcept {
    const OneThread alone(call);
    machine().enter();
    finish_part(part);
    RequestObject* r = request_for(comm, record, part);
    number(call, r);
    issue_if_outside(r);
    *request = handle_of(r);
    return 0;
}

int init_collective(Call&, CommObject* comm, Part* part, CollectiveRecord* record,
                    mpi::Request* request) noexcept {
    finish_part(part);
    RequestObject* r = request_for(comm, record, part);
    make_persistent(r);
    *request = handle_of(r);
    return 0;
}

int start_persistent(Call& call, RequestObject* r) noexcept {
    const OneThread alone(call);
    if (r->collective->part == nullptr) refuse(r->collective->name);
    machine().enter();
    number(call, r);
    issue_if_outside(r);
    return 0;
}

// ---- creation

int create(Call& call, CommObject* parent, Part::Asked asked, const Native& native,
           CommObject** made) noexcept {
    const OneThread alone(call);
    machine().enter();
    Part* part = new_part(Kind::create, true);
    part->asked = asked;
    part->creation = ++parent->creations;
    CollectiveRecord* record = new_collective(nullptr, call.function());
    RequestObject* r = request_for(parent, record, part);
    r->flags |= kInternal;
    number(call, r);
    the_log().creating = part;
    see_through(call, r, native);
    the_log().creating = nullptr;
    *made = the_log().made;
    return consume(r, nullptr, nullptr);
}

Part* creation_now() noexcept { return the_log().creating; }

void leave(Call& call, CommObject* comm) noexcept {
    const OneThread alone(call);
    machine().enter();
    Part* part = new_part(Kind::free, true);
    CollectiveRecord* record = new_collective(nullptr, call.function());
    RequestObject* r = request_for(comm, record, part);
    r->flags |= kInternal;
    number(call, r);
    part->way = Way::native;
    see_through(call, r, Native{nullptr, [](const void*) { return 0; }});
    consume(r, nullptr, nullptr);
}

}  // namespace fermata::front::logged
