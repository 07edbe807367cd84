// Receives and probes. Pulled messages come first; a thread that waits never stays in the lower half when a
// checkpoint is pending.
#include "front/requests/operations.h"

namespace fermata::front {
namespace {

// A receive that the lower half already works on (the direct or translated tier gave up), or one from the
// start.
__attribute__((noinline)) int recv_carefully(Call& call, void* buf, Count count, Datatype type, int source,
                                             int tag, CommObject* c, RealRequest open,
                                             Status* status) noexcept {
    RequestObject* r = describe(What::recv, buf, count, type, source, tag, c);
    if (open == RealRequest{}) return run_blocking(call, r, status);
    r->flags |= kInternal;
    note_posted(r);
    r->real = static_cast<uint64_t>(open);
    wait_complete(call, r);
    return consume(r, nullptr, status);
}

Status envelope_of(const QueuedMessage* m) noexcept { return Status{m->source, m->tag, 0, 0, m->bytes, 0}; }

// One look for a message, in MPI's order: queue, then the lower half. Careful tier.
// `message` null: it stays where it is.
int look(CommObject* c, int source, int tag, bool* found, RealMessage* message, QueuedMessage** queued,
         Status* status) FERMATA_WANTS(library_lock) {
    *found = false;
    QueuedMessage* m = message != nullptr ? engine.queue.take(c->uid, match_source(source), match_tag(tag))
                                          : engine.queue.find(c->uid, match_source(source), match_tag(tag));
    if (m != nullptr) {
        *found = true;
        *status = envelope_of(m);
        if (message != nullptr) {
            *queued = m;
            *message = static_cast<RealMessage>(m->message);
            queue_changed();
        }
        return 0;
    }
    int flag = 0;
    int rc = message != nullptr ? LOWER(Improbe)(source, tag, real_of(c), &flag, message, status)
                                : LOWER(Iprobe)(source, tag, real_of(c), &flag, status);
    *found = flag != 0;
    return rc;
}

Message keep_message(Call& call, CommObject* c, RealMessage real, QueuedMessage* queued,
                     const Status& status) noexcept {
    MessageObject* m = new_message(c, status);
    m->real = static_cast<uint64_t>(real);
    if (queued == nullptr)
        count_received(slot_of(call.record()), c->world_of(status.source));
    else if (queued->held)
        MessageQueue::destroy(queued);  // counted already, and still the lower half's
    else
        m->queued = queued;
    return static_cast<Message>(m->handle);
}

// Probe and Mprobe while a checkpoint is pending, or with messages in the queue.
__attribute__((noinline)) int probe_carefully(Call& call, CommObject* c, int source, int tag,
                                              Message* message, Status* status) noexcept {
    Waiter waiter(call);
    int32_t world = c->world_of(source);
    Waiter::Needs needs;
    needs.world = &world;
    needs.wanted = label_of(c, tag);
    for (;;) {
        Careful careful(call.record());
        RealMessage real{};
        QueuedMessage* queued = nullptr;
        bool found = false;
        {
            SpinGuard guard(library_lock);
            int rc = look(c, source, tag, &found, message != nullptr ? &real : nullptr, &queued, status);
            if (rc != 0) return rc;
            if (found && message != nullptr) *message = keep_message(call, c, real, queued, *status);
        }
        if (found) return 0;
        waiter.turn(needs);
    }
}

int probe_once(Call& call, CommObject* c, int source, int tag, Message* message, int* flag,
               Status* status) noexcept {
    split::ThreadRecord* record = call.record();
    bool found = false;
    {
        Careful careful(record);
        if (pending_checkpoint()) pull(record, slot_of(record));
        RealMessage real{};
        QueuedMessage* queued = nullptr;
        SpinGuard guard(library_lock);
        int rc = look(c, source, tag, &found, message != nullptr ? &real : nullptr, &queued, status);
        if (rc != 0) return rc;
        if (found && message != nullptr) *message = keep_message(call, c, real, queued, *status);
    }
    *flag = found ? 1 : 0;
    if (found)
        poll_succeeded(call);
    else
        poll_failed(call);
    return 0;
}

int iprobe_logged(Call& call, CommObject* c, int source, int tag, int* flag, Status* status) noexcept {
    bool found = false;
    int rc = logged::probe(call, c, source, tag, false, &found, status);
    *flag = found ? 1 : 0;
    return call.finish(static_cast<Comm>(c->handle), rc);
}
// Matched and received in one.
int mprobe_logged(Call& call, CommObject* c, int source, int tag, bool waits, int* flag, Message* message,
                  Status* status) noexcept {
    QueuedMessage* queued = nullptr;
    int rc = logged::matched_probe(call, c, source, tag, waits, &queued, status);
    *flag = queued != nullptr ? 1 : 0;
    if (queued != nullptr) {
        MessageObject* m = new_message(c, *status);
        m->queued = queued;
        *message = static_cast<Message>(m->handle);
    }
    return call.finish(static_cast<Comm>(c->handle), rc);
}

// In the careful tier, or the thread's first call.
__attribute__((noinline)) int recv_as_call(void* buf, Count count, Datatype type, int source, int tag,
                                           Comm comm, Status* status) noexcept {
    Call call("MPI_Recv");
    CommObject* c = find(comm);
    if (c == nullptr) return call.finish(comm, FM_ERR_COMM);
    call.record()->waiting_for = c->world_of(source);
    if (source == FM_PROC_NULL) {
        proc_null_status(status);
        return 0;
    }
    return call.finish(comm, recv_carefully(call, buf, count, type, source, tag, c, RealRequest{}, status));
}

__attribute__((noinline)) int iprobe_as_call(int source, int tag, Comm comm, int* flag,
                                             Status* status) noexcept {
    Call call("MPI_Iprobe");
    CommObject* c = find(comm);
    if (c == nullptr) return call.finish(comm, FM_ERR_COMM);
    if (source == FM_PROC_NULL) {
        proc_null_status(status);
        *flag = 1;
        return 0;
    }
    if (!careful_tier()) return call.finish(comm, LOWER(Iprobe)(source, tag, real_of(c), flag, status));
    Status own;
    if (logged::on()) return iprobe_logged(call, c, source, tag, flag, status != nullptr ? status : &own);
    return call.finish(comm,
                       probe_once(call, c, source, tag, nullptr, flag, status != nullptr ? status : &own));
}

}  // namespace

int DirectMessage::receive_goes_on(split::ThreadRecord* record, void* buf, Count count, Datatype type,
                                   int source, int tag, CommObject* comm, RealRequest open,
                                   Status* status) noexcept {
    DirectMessage(record).rise();
    Call call("MPI_Recv", record);
    return call.finish(static_cast<Comm>(comm->handle),
                       recv_carefully(call, buf, count, type, source, tag, comm, open, status));
}

extern "C" {

int fm_Recv(void* buf, Count count, Datatype datatype, int source, int tag, Comm comm, Status* status) {
    DirectMessage call("MPI_Recv", DirectMessage::kNotCareful);
    if (!call) return recv_as_call(buf, count, datatype, source, tag, comm, status);
    CommObject* const c = find(comm);
    if (__builtin_expect(c == nullptr, 0)) {
        call.give_up();
        return recv_as_call(buf, count, datatype, source, tag, comm, status);
    }
    const int32_t world = c->world_of(source);
    call.record()->waiting_for = world;
    RealRequest open{};
    Status own;
    Status* out = status != nullptr || world >= 0 ? status : &own;
    int rc = call.lower(front.table->RecvSpin, buf, count, to_real(datatype), source, tag, real_of(c),
                        &front.attention, &open, out);
    if (__builtin_expect(rc < 0, 0))
        return DirectMessage::receive_goes_on(call.record(), buf, count, datatype, source, tag, c, open,
                                              status);
    // A refused argument is no message; a truncated one is.
    if (__builtin_expect(rc == 0 || rc == FM_ERR_TRUNCATE, 1))
        count_received(call.slot(), world >= 0 ? world : c->world_of(out->source));
    return call.end(rc, c);
}

int fm_Irecv(void* buf, Count count, Datatype datatype, int source, int tag, Comm comm,
             mpi::Request* request) {
    return immediate_at_once<What::recv>("MPI_Irecv", &mpi::Direct::Irecv, &mpi::Table::Irecv, buf, count,
                                         datatype, source, tag, comm, request);
}

int fm_Probe(int source, int tag, Comm comm, Status* status) {
    Call call("MPI_Probe");
    CommObject* c = find(comm);
    if (c == nullptr) return call.finish(comm, FM_ERR_COMM);
    Status own;
    Status* out = status != nullptr ? status : &own;
    if (source == FM_PROC_NULL) {
        proc_null_status(out);
        return 0;
    }
    call.record()->waiting_for = c->world_of(source);
    if (logged::on()) {
        bool found = false;
        return call.finish(comm, logged::probe(call, c, source, tag, true, &found, out));
    }
    if (!careful_tier()) {
        int found = 0;
        int rc = LOWER(ProbeSpin)(source, tag, real_of(c), &front.attention, out, &found);
        if (found != 0 || rc != 0) return call.finish(comm, rc);
    }
    return call.finish(comm, probe_carefully(call, c, source, tag, nullptr, out));
}

int fm_Iprobe(int source, int tag, Comm comm, int* flag, Status* status) {
    DirectMessage call("MPI_Iprobe", DirectMessage::kNotCareful);
    if (!call) return iprobe_as_call(source, tag, comm, flag, status);
    CommObject* const c = find(comm);
    if (__builtin_expect(c == nullptr, 0) || source == FM_PROC_NULL) {
        call.give_up();
        return iprobe_as_call(source, tag, comm, flag, status);
    }
    return call.end(call.lower(front.table->Iprobe, source, tag, real_of(c), flag, status), c);
}

int fm_Mprobe(int source, int tag, Comm comm, Message* message, Status* status) {
    Call call("MPI_Mprobe");
    CommObject* c = find(comm);
    if (c == nullptr) return call.finish(comm, FM_ERR_COMM);
    Status own;
    Status* out = status != nullptr ? status : &own;
    if (source == FM_PROC_NULL) {
        proc_null_status(out);
        *message = FM_MESSAGE_NO_PROC;
        return 0;
    }
    call.record()->waiting_for = c->world_of(source);
    int flag = 0;
    if (logged::on()) return mprobe_logged(call, c, source, tag, true, &flag, message, out);
    if (!careful_tier()) {
        int found = 0;
        RealMessage real{};
        int rc = LOWER(MprobeSpin)(source, tag, real_of(c), &front.attention, &real, out, &found);
        if (rc != 0) return call.finish(comm, rc);
        if (found != 0) {
            *message = keep_message(call, c, real, nullptr, *out);
            return 0;
        }
    }
    return call.finish(comm, probe_carefully(call, c, source, tag, message, out));
}

int fm_Improbe(int source, int tag, Comm comm, int* flag, Message* message, Status* status) {
    Call call("MPI_Improbe");
    CommObject* c = find(comm);
    if (c == nullptr) return call.finish(comm, FM_ERR_COMM);
    Status own;
    Status* out = status != nullptr ? status : &own;
    if (source == FM_PROC_NULL) {
        proc_null_status(out);
        *message = FM_MESSAGE_NO_PROC;
        *flag = 1;
        return 0;
    }
    if (logged::on()) return mprobe_logged(call, c, source, tag, false, flag, message, out);
    if (careful_tier()) return call.finish(comm, probe_once(call, c, source, tag, message, flag, out));
    RealMessage real{};
    int rc = LOWER(Improbe)(source, tag, real_of(c), flag, &real, out);
    if (rc == 0 && *flag != 0) *message = keep_message(call, c, real, nullptr, *out);
    return call.finish(comm, rc);
}

}  // extern "C"

namespace {

// The receive of a matched message as a request. The ledger has counted it.
int receive_matched(Call& call, void* buf, Count count, Datatype type, Message* message,
                    RequestObject** out) noexcept FERMATA_LOCKS_UNSEEN {
    if (*message == FM_MESSAGE_NO_PROC) {
        RequestObject* r = new_request(What::done);
        proc_null_status(&r->status);
        r->state = State::complete;
        *message = FM_MESSAGE_NULL;
        *out = r;
        return 0;
    }
    auto* m = static_cast<MessageObject*>(find_object(word_of(*message), Kind::message));
    if (m == nullptr) return FM_ERR_REQUEST;
    RequestObject* r = describe(What::recv, buf, count, type, m->source, m->tag, m->comm);
    r->flags |= kCounted;
    LockIfCareful guard(call.record());
    // Looked at under the guard: the drain may just have taken the message over.
    if (m->queued != nullptr) {
        r->matched = m->queued;
        m->queued = nullptr;
        send_receipt(r->matched, m->comm->world_of(m->source));
        advance(r, slot_of(call.record()));
    } else {
        auto real = static_cast<RealMessage>(m->real);
        int rc = LOWER(Imrecv)(buf, count, real_of(r->type), &real, reinterpret_cast<RealRequest*>(&r->real));
        if (rc != 0) {
            r->real = 0;
            release_request(r);
            return rc;
        }
    }
    release_message(m);
    *message = FM_MESSAGE_NULL;
    *out = r;
    return 0;
}

}  // namespace

extern "C" {

int fm_Mrecv(void* buf, Count count, Datatype type, Message* message, Status* status) {
    Call call("MPI_Mrecv");
    RequestObject* r;
    int rc = receive_matched(call, buf, count, type, message, &r);
    if (rc != 0) return call.finish(rc);
    Comm comm = r->comm != nullptr ? static_cast<Comm>(r->comm->handle) : FM_COMM_WORLD;
    r->flags |= kInternal;
    wait_complete(call, r);
    return call.finish(comm, consume(r, nullptr, status));
}

int fm_Imrecv(void* buf, Count count, Datatype type, Message* message, mpi::Request* request) {
    Call call("MPI_Imrecv");
    RequestObject* r;
    int rc = receive_matched(call, buf, count, type, message, &r);
    if (rc == 0) *request = handle_of(r);
    return call.finish(rc);
}

}  // extern "C"

}  // namespace fermata::front
