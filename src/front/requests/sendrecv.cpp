// Sendrecv and its kin: a receive and a send that make progress together.
#include "front/requests/exchange.h"
#include "front/requests/operations.h"

namespace fermata::front {
namespace {

// The data of a replaced buffer, packed, so that it can be sent while the buffer receives.
char* packed_copy(Call& call, const void* buf, Count count, Datatype type, CommObject* c, Count* bytes,
                  int* rc) noexcept {
    TypeObject* t = find(type);
    *bytes = 0;
    if (t == nullptr || count < 0) {
        *rc = t == nullptr ? FM_ERR_TYPE : FM_ERR_COUNT;
        return nullptr;
    }
    if (t->predefined && t->size == t->extent) {
        *bytes = count * t->size;
        auto* copy = static_cast<char*>(fm_alloc(static_cast<size_t>(*bytes)));
        if (*bytes > 0) __builtin_memcpy(copy, buf, static_cast<size_t>(*bytes));
        return copy;
    }
    LockIfCareful guard(call.record());
    Count size = 0;
    *rc = LOWER(Pack_size)(count, real_of(t), real_of(c), &size);
    if (*rc != 0) return nullptr;
    auto* copy = static_cast<char*>(fm_alloc(static_cast<size_t>(size)));
    *rc = LOWER(Pack)(buf, count, real_of(t), copy, size, bytes, real_of(c));
    if (*rc == 0) return copy;
    fm_free(copy);
    return nullptr;
}

RequestObject* internal(RequestObject* r) noexcept {
    r->flags |= kInternal;
    return r;
}
RequestObject* receive_of(const Exchange& x) noexcept {
    return internal(describe(What::recv, x.recvbuf, x.recvcount, x.recvtype, x.source, x.recvtag, x.comm));
}
RequestObject* send_of(const Exchange& x) noexcept {
    return internal(describe(What::send, x.sendbuf, x.sendcount, x.sendtype, x.dest, x.sendtag, x.comm));
}

// Checks all arguments before anything is begun: an exchange that is refused takes no message.
int refusal(const Exchange& x) noexcept {
    const int peers = static_cast<int>(x.comm->peers().size());
    const auto is_peer = [&](int rank) { return rank == FM_PROC_NULL || (rank >= 0 && rank < peers); };
    if (x.sendcount < 0 || x.recvcount < 0) return FM_ERR_COUNT;
    if (find(x.sendtype) == nullptr || find(x.recvtype) == nullptr) return FM_ERR_TYPE;
    if (!is_peer(x.dest) || (x.source != FM_ANY_SOURCE && !is_peer(x.source))) return FM_ERR_RANK;
    if (x.sendtag < 0 || (x.recvtag < 0 && x.recvtag != FM_ANY_TAG)) return FM_ERR_TAG;
    return 0;
}

// Takes back what the library was asked to receive: its partner was refused.
void take_back(Call& call, RequestObject* recv) noexcept {
    if (recv->real != 0) {
        LockIfCareful guard(call.record());
        LOWER(Cancel)(reinterpret_cast<RealRequest*>(&recv->real));
        recv->flags |= kCancelled;
    }
    wait_complete(call, recv);
    release_request(recv);
}

// Both as requests. `started`: what a direct or translated call has already begun and not finished, null if
// nothing; null in it is what it has finished, for the receive with the status in *status.
int sendrecv_carefully(Call& call, const Exchange& x, const RealRequest* started, Status* status) noexcept {
    clock::Slot& slot = slot_of(call.record());
    RequestObject* recv = receive_of(x);
    RequestObject* send = send_of(x);
    if (started != nullptr) {
        note_posted(recv);
        recv->real = static_cast<uint64_t>(started[0]);
        send->real = static_cast<uint64_t>(started[1]);
        if (recv->real == 0) note_complete(recv, *status, status->error, slot);
        if (send->real == 0) note_complete(send, Status{}, 0, slot);
    } else {
        int rc = start_recv(recv, slot);
        if (rc != 0) {
            recv->real = 0;
            release_request(recv);
            release_request(send);
            return rc;
        }
        rc = begin_send(call, send);
        if (rc != 0) {
            send->real = 0;
            release_request(send);
            take_back(call, recv);
            return rc;
        }
    }
    wait_complete(call, recv);
    wait_complete(call, send);
    int send_error = consume(send, nullptr, nullptr);
    int recv_error = consume(recv, nullptr, status);
    return recv_error != 0 ? recv_error : send_error;
}

// The translated tier has finished both: what of it counts. A refused argument is no message; a truncated one
// is.
__attribute__((always_inline)) inline void count_finished(clock::Slot& slot, const CommObject* comm, int rc,
                                                          int32_t to, int sendtag, int32_t from,
                                                          int source) noexcept {
    if (__builtin_expect(rc == 0 || rc == FM_ERR_TRUNCATE, 1))
        count_received(slot, from >= 0 ? from : comm->world_of(source));
    else
        uncount_sent(slot, to, comm, sendtag);
}

int sendrecv(Call& call, const Exchange& x, Status* status) noexcept {
    if (int rc = refusal(x); rc != 0) return rc;
    Status own{};
    if (status == nullptr) status = &own;
    if (logged::on()) {
        RequestObject* receive = receive_of(x);
        return logged::sendrecv(call, send_of(x), receive, status);
    }
    if (careful_tier()) return sendrecv_carefully(call, x, nullptr, status);
    clock::Slot& slot = slot_of(call.record());
    const int32_t to = x.comm->world_of(x.dest), from = x.comm->world_of(x.source);
    call.record()->waiting_for = from;
    count_sent(slot, to, x.comm, x.sendtag);
    RealRequest started[2] = {};
    int done = 0;
    status->error = 0;
    int rc = LOWER(SendrecvSpin)(x.sendbuf, x.sendcount, to_real(x.sendtype), x.dest, x.sendtag, x.recvbuf,
                                 x.recvcount, to_real(x.recvtype), x.source, x.recvtag, real_of(x.comm),
                                 &front.attention, started, status, &done);
    if (__builtin_expect(done == 0, 0)) return sendrecv_carefully(call, x, started, status);
    count_finished(slot, x.comm, rc, to, x.sendtag, from, status->source);
    return rc;
}

// In the careful tier, or the thread's first call.
__attribute__((noinline)) int sendrecv_as_call(Exchange x, Comm comm, Status* status) noexcept {
    Call call("MPI_Sendrecv");
    x.comm = find(comm);
    if (__builtin_expect(x.comm == nullptr, 0)) return call.finish(comm, FM_ERR_COMM);
    return call.finish(comm, sendrecv(call, x, status));
}

// A request of two parts.
int isendrecv(Call& call, const Exchange& x, char* copy, mpi::Request* request) noexcept {
    int rc = refusal(x);
    RequestObject* recv = rc == 0 ? receive_of(x) : nullptr;
    if (rc == 0) rc = begin(call, recv);
    if (rc != 0) {
        fm_free(copy);
        return rc;
    }
    RequestObject* send = send_of(x);
    rc = begin(call, send);
    if (rc != 0) {
        {
            LockIfCareful guard(call.record());
            if (recv->real != 0) LOWER(Cancel)(reinterpret_cast<RealRequest*>(&recv->real));
            recv->flags |= kCancelled;
        }
        adopt_orphan(recv);
        fm_free(copy);
        return rc;
    }
    RequestObject* r = new_request(What::sendrecv);
    r->comm = x.comm;
    if (!x.comm->predefined) comm_ref(x.comm);
    r->pair = fm_new<Pair>(Pair{send, recv, copy});
    *request = handle_of(r);
    return 0;
}

}  // namespace

int DirectMessage::exchange_goes_on(split::ThreadRecord* record, const Exchange& x,
                                    const RealRequest* started, Status* status) noexcept {
    DirectMessage(record).rise();
    Call call("MPI_Sendrecv", record);
    return call.finish(static_cast<Comm>(x.comm->handle), sendrecv_carefully(call, x, started, status));
}

int DirectMessage::exchange_refused(split::ThreadRecord* record, const Exchange& x, RealRequest receive,
                                    int rc) noexcept {
    rc = class_of(rc);
    DirectMessage entry(record);
    entry.up();
    entry.rise();
    uncount_sent(entry.slot(), x.comm->world_of(x.dest), x.comm, x.sendtag);
    Call call("MPI_Sendrecv", record);
    RequestObject* recv = receive_of(x);
    note_posted(recv);
    recv->real = static_cast<uint64_t>(receive);
    take_back(call, recv);
    return call.finish(static_cast<Comm>(x.comm->handle), rc);
}

extern "C" {

int fm_Sendrecv(const void* sendbuf, Count sendcount, Datatype sendtype, int dest, int sendtag, void* recvbuf,
                Count recvcount, Datatype recvtype, int source, int recvtag, Comm comm, Status* status) {
    DirectMessage call("MPI_Sendrecv", DirectMessage::kNotCarefulNorWatched);
    const auto asked = [&](CommObject* c) {
        return Exchange{sendbuf,   sendcount, sendtype, dest,    sendtag, recvbuf,
                        recvcount, recvtype,  source,   recvtag, c};
    };
    if (!call) return sendrecv_as_call(asked(nullptr), comm, status);
    CommObject* const c = find(comm);
    if (__builtin_expect(c == nullptr || c->world_of(dest) < 0, 0) ||
        !are_plain_numbers(sendcount, recvcount, Count{sendtag})) {
        call.give_up();
        return sendrecv_as_call(asked(nullptr), comm, status);
    }
    const int32_t to = call.count_sent_to(c, dest), from = c->world_of(source);
    call.record()->waiting_for = from;
    Status own;
    Status* const out = status != nullptr ? status : &own;
    out->error = 0;
    RealRequest started[2] = {};
    int done = 0;
    int rc = call.lower(front.table->SendrecvSpin, sendbuf, sendcount, to_real(sendtype), dest, sendtag,
                        recvbuf, recvcount, to_real(recvtype), source, recvtag, real_of(c), &front.attention,
                        started, out, &done);
    if (__builtin_expect(done == 0, 0)) {
        return DirectMessage::exchange_goes_on(call.record(), asked(c), started, out);
    }
    count_finished(call.slot(), c, rc, to, sendtag, from, out->source);
    return call.end(rc, c);
}

int fm_Sendrecv_replace(void* buf, Count count, Datatype type, int dest, int sendtag, int source, int recvtag,
                        Comm comm, Status* status) {
    Call call("MPI_Sendrecv_replace");
    CommObject* c = find(comm);
    if (c == nullptr) return call.finish(comm, FM_ERR_COMM);
    int rc = 0;
    Count bytes;
    char* copy = packed_copy(call, buf, count, type, c, &bytes, &rc);
    if (copy != nullptr) {
        rc = sendrecv(call, {copy, bytes, FM_PACKED, dest, sendtag, buf, count, type, source, recvtag, c},
                      status);
        fm_free(copy);
    }
    return call.finish(comm, rc);
}

int fm_Isendrecv(const void* sendbuf, Count sendcount, Datatype sendtype, int dest, int sendtag,
                 void* recvbuf, Count recvcount, Datatype recvtype, int source, int recvtag, Comm comm,
                 mpi::Request* request) {
    Call call("MPI_Isendrecv");
    CommObject* c = find(comm);
    if (c == nullptr) return call.finish(comm, FM_ERR_COMM);
    return call.finish(comm, isendrecv(call,
                                       {sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount,
                                        recvtype, source, recvtag, c},
                                       nullptr, request));
}

int fm_Isendrecv_replace(void* buf, Count count, Datatype type, int dest, int sendtag, int source,
                         int recvtag, Comm comm, mpi::Request* request) {
    Call call("MPI_Isendrecv_replace");
    CommObject* c = find(comm);
    if (c == nullptr) return call.finish(comm, FM_ERR_COMM);
    int rc = 0;
    Count bytes;
    char* copy = packed_copy(call, buf, count, type, c, &bytes, &rc);
    if (copy != nullptr)
        rc = isendrecv(call, {copy, bytes, FM_PACKED, dest, sendtag, buf, count, type, source, recvtag, c},
                       copy, request);
    return call.finish(comm, rc);
}

}  // extern "C"

}  // namespace fermata::front
