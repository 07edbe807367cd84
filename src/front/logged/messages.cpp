// Messages: their start, the library's word on them, probes.
#include "base/kill_point.h"
#include "front/core/fatal.h"
#include "front/logged/state.h"
#include "front/objects/objects.h"
#include "front/requests/buffered.h"

namespace fermata::front::logged {
namespace {

using replay::CallKind;
using replay::Outcome;
using replay::Stage;

replay::Pattern pattern_of(const CommObject& comm, int source, int tag) noexcept {
    replay::Pattern pattern{uid_of(comm), {}, {}};
    if (source != mpi::FM_ANY_SOURCE) pattern.source = rank_of(comm.world_of(source));
    if (tag != mpi::FM_ANY_TAG) pattern.tag = tag_of(tag);
    return pattern;
}

// Finds what the library would refuse, which must not get a number.
int refusal(const RequestObject* r) noexcept {
    if (r->type == nullptr || (!r->type->predefined && !r->type->committed)) return mpi::FM_ERR_TYPE;
    if (r->count < 0) return mpi::FM_ERR_COUNT;
    const bool wild = r->what == What::recv && r->peer == mpi::FM_ANY_SOURCE;
    if (r->world < 0 && !wild) return mpi::FM_ERR_RANK;
    if (r->tag < 0 && !(r->what == What::recv && r->tag == mpi::FM_ANY_TAG)) return mpi::FM_ERR_TAG;
    if (r->comm->inter) refuse("intercommunicators");
    return 0;
}

int released(RequestObject* r, int rc) noexcept {
    if ((r->flags & kPersistent) == 0) release_request(r);
    return rc;
}

// The copy of a buffered send is the library's from here on, and the message is in the log at once.
void begin_buffered(Call& call, RequestObject* r) noexcept {
    replay::Bytes packed;
    pack({r->buf, r->count, r->type}, &packed);
    auto* copy = static_cast<char*>(fm_alloc(packed.size() + 1));
    __builtin_memcpy(copy, packed.data(), packed.size());
    RequestObject* send = new_request(What::send);
    send->comm = r->comm;
    if (!r->comm->predefined) comm_ref(r->comm);
    send->buf = copy;
    send->count = static_cast<int64_t>(packed.size());
    send->type = front::find(mpi::FM_BYTE);
    send->peer = r->peer;
    send->world = r->world;
    send->tag = r->tag;
    send->flags = kInternal;
    begin(call, send);
    send->copy = copy;  // goes with the request
    free_active(call, send);
}

}  // namespace

int begin(Call& call, RequestObject* r) noexcept {
    const OneThread alone(call);
    r->posted = 0;
    if (r->peer == mpi::FM_PROC_NULL) {
        proc_null_status(&r->status);
        r->state = State::complete;
        return 0;
    }
    if (int rc = refusal(r); rc != 0) return released(r, rc);
    Log& log = the_log();
    if (r->what == What::send && r->mode == kBuffered) {
        begin_buffered(call, r);
        empty_status(&r->status);
        r->state = State::complete;
        return 0;
    }
    log.starting = r;
    replay::RequestNo no;
    Stage stage;
    if (r->what == What::send) {
        // A persistent one keeps its mode in `serial`: the front's own receipts are not used here.
        const bool synchronous = r->mode == kSynchronous || ((r->flags & kPersistent) != 0 && r->serial != 0);
        if (r->mode == kSynchronous) r->mode = kStandard;
        until_may_send(call);
        const replay::Channel channel{uid_of(*r->comm), own_rank(), rank_of(r->world), tag_of(r->tag)};
        const replay::Request& started = log.machine.start_send(channel, synchronous);
        no = started.no;
        stage = started.stage;
    } else {
        const replay::Request& started = log.machine.start_receive(pattern_of(*r->comm, r->peer, r->tag));
        no = started.no;
        stage = started.stage;
    }
    enter_open(r, no);
    r->real = 0;
    if (stage != Stage::outside || !is_live()) return 0;
    log.machine.issued(no);
    if (r->what == What::send) kill_point("send.before");
    hand_to_library(r);
    if (r->what == What::send) kill_point("send.after");
    return 0;
}

void hand_to_library(RequestObject* r) noexcept {
    const int rc = issue_message(r);
    if (rc == 0) return;
    r->real = 0;
    if (!library_fails(r->what == What::send ? "MPI_Isend" : "MPI_Irecv", rc))
        fatal_line("fermata: the library refuses a message that is in the log");
}

int issue_message(RequestObject* r) noexcept {
    if (r->what == What::send)
        return LOWER(Isend)(r->buf, r->count, real_of(r->type), r->peer, r->tag, real_of(r->comm),
                            real_request(r));
    return LOWER(Irecv)(r->buf, r->count, real_of(r->type), r->peer, r->tag, real_of(r->comm),
                        real_request(r));
}

bool look_at(replay::RequestNo no) noexcept {
    RequestObject* r = find(no);
    if (r == nullptr || r->real == 0) return false;
    int flag = 0;
    mpi::Status status{};
    const int rc = LOWER(Test)(real_request(r), &flag, &status);
    if (flag == 0 && rc == 0) return false;
    return note_ended(r, status, rc);
}

bool note_ended(RequestObject* r, const mpi::Status& status, int rc) noexcept {
    r->real = 0;
    if (rc != 0 && library_fails(r->what == What::collective ? r->collective->name : "a message", rc))
        return false;
    if (rc == 0) return believe(r, status);
    accept(r, status, rc);
    return true;
}

void accept(RequestObject* r, const mpi::Status& status, int rc) noexcept {
    if (r->what == What::collective) return call_ended(r, rc);
    r->status = status;
    r->error = rc;
    kill_point(r->what == What::send ? "send.complete" : "receive.matched");
    if (r->what == What::send)
        machine().completed(number_of(r));
    else
        machine().received(number_of(r), {rank_of(r->comm->world_of(status.source)), tag_of(status.tag)});
}

void free_active(Call&, RequestObject* r) noexcept {
    if (r->what != What::send || r->posted == 0)
        refuse("MPI_Request_free of such a request while it is active");
    Log& log = the_log();
    make_room(static_cast<uint64_t>(Block{r->buf, r->count, r->type}.bytes()), false);
    log.machine.free_send(number_of(r));
    forget_held(r);
    for (size_t at = log.open.size(); at-- > 0;)
        if (log.open[at] == r) {
            log.open.erase(log.open.begin() + static_cast<ptrdiff_t>(at));
            break;
        }
    r->posted = 0;
    r->flags &= static_cast<uint8_t>(~kPersistent);
    log.left.push_back(r);
}

// ---- probes

namespace {

// One look; what it finds may be told.
bool look_for(const CommObject& comm, int source, int tag, mpi::Status* status) noexcept {
    int flag = 0;
    const int rc = LOWER(Iprobe)(source, tag, real_of(&comm), &flag, status);
    if (rc != 0 && !library_fails("MPI_Iprobe", rc))
        fatal_line("fermata: MPI_Iprobe failed in a job with a message log");
    if (rc != 0 || flag == 0) return false;
    const replay::Envelope found{rank_of(comm.world_of(status->source)), tag_of(status->tag)};
    for (;;) {
        const auto missing = machine().missing_for_probe(uid_of(comm), found);
        if (!missing) return true;
        if (!look_at(*missing)) return false;
    }
}

Outcome outcome_of(const CommObject& comm, bool found, const mpi::Status& status) noexcept {
    Outcome outcome{.kind = CallKind::probe};
    outcome.flag = found;
    if (!found) return outcome;
    outcome.index = status.count;
    outcome.probed =
        replay::Probed{uid_of(comm), {rank_of(comm.world_of(status.source)), tag_of(status.tag)}};
    return outcome;
}

}  // namespace

namespace {

// Tells the program what a probe has found.
void write_status(const CommObject& comm, const Outcome& outcome, mpi::Status* status) noexcept {
    if (!outcome.flag) return;
    const replay::Envelope& from = outcome.probed->from;
    *status = mpi::Status{rank_in(comm, from.source), static_cast<int32_t>(from.tag), 0, 0, outcome.index, 0};
}

// The receive of a message that a probe has found. Both copies begin it once they know which one.
RequestObject* receive_found(Call& call, CommObject* comm, const mpi::Status& status,
                             QueuedMessage* m) noexcept {
    RequestObject* r = new_request(What::recv);
    r->comm = comm;
    if (!comm->predefined) comm_ref(comm);
    r->buf = m->data;
    r->count = status.count;
    r->type = front::find(mpi::FM_BYTE);
    r->peer = status.source;
    r->world = comm->world_of(status.source);
    r->tag = status.tag;
    r->flags = kInternal;
    begin(call, r);
    return r;
}

}  // namespace

int probe(Call& call, CommObject* comm, int source, int tag, bool waits, bool* found,
          mpi::Status* status) noexcept {
    const OneThread alone(call);
    machine().enter();
    if (is_live()) progress();
    const Outcome outcome = resolve(call, CallKind::probe, nullptr, 0, [&]() -> std::optional<Outcome> {
        const bool one = look_for(*comm, source, tag, status);
        if (!one && waits) return {};
        return outcome_of(*comm, one, *status);
    });
    *found = outcome.flag;
    write_status(*comm, outcome, status);
    return 0;
}

int matched_probe(Call& call, CommObject* comm, int source, int tag, bool waits, QueuedMessage** message,
                  mpi::Status* status) noexcept {
    const OneThread alone(call);
    machine().enter();
    if (is_live()) progress();
    RequestObject* r = nullptr;
    QueuedMessage* m = nullptr;
    const auto begin_receive = [&] {
        m = MessageQueue::make(comm->uid, status->source, status->tag, status->count);
        MessageQueue::allocate(m);
        r = receive_found(call, comm, *status, m);
    };
    Rounds rounds(call);
    for (;;) {
        std::optional<Outcome> outcome;
        if (is_live()) {
            if (r == nullptr && look_for(*comm, source, tag, status)) begin_receive();
            if (r == nullptr && !waits) outcome = outcome_of(*comm, false, *status);
            if (r != nullptr && ready(r)) {
                outcome = outcome_of(*comm, true, *status);
                outcome->told.push_back(number_of(r));
            }
            if (outcome) make_room_for(*outcome);
            if (outcome) tell(*outcome);
        } else {
            const replay::Record* next = look_ahead();
            if (next != nullptr && next->outcome.kind == CallKind::probe && next->outcome.flag &&
                r == nullptr) {
                write_status(*comm, next->outcome, status);
                begin_receive();
            }
            outcome = follow(CallKind::probe);
        }
        if (outcome) {
            if (r != nullptr) close_told(*outcome, &r, 1);
            break;
        }
        rounds.next();
    }
    if (r != nullptr) {
        *status = r->status;
        consume(r, nullptr, nullptr);
    }
    *message = m;
    return 0;
}

}  // namespace fermata::front::logged
