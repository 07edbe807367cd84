// The point-to-point entries that programs call most, each as one function from the application to the
// library: the direct tier: front/requests/direct_message.h on objects found by the ABI's own handles.
// Included once, with direct_wait.h, by the generated point-to-point source of an ABI, whose X_translated is
// the usual way: for special ranks, tags and requests, handles that were not met before, statuses of another
// library, a checkpoint on its way.
#pragma once

#include "front/abi/objects.h"
#include "front/requests/direct_message.h"
#include "front/requests/engine.h"
#include "front/requests/exchange.h"

namespace fermata::abi {

using front::CommObject;
using front::DirectMessage;
using front::front;
using front::real_of;
using front::TypeObject;
using front::What;

#define FERMATA_COLD static __attribute__((noinline, cold))

__attribute__((always_inline)) inline CommObject* comm_of(A_Comm handle) {
    return static_cast<CommObject*>(object_of<Kind::comm>(handle));
}
__attribute__((always_inline)) inline TypeObject* type_of(A_Datatype handle) {
    return static_cast<TypeObject*>(object_of<Kind::datatype>(handle));
}
// The translated tier, which knows the handles from now on.
template <auto translated, typename Buffer, typename... Last>
__attribute__((noinline, cold)) int meet_both(Buffer* buf, int count, A_Datatype datatype, int peer, int tag,
                                              A_Comm comm, Last... last) {
    meet<Kind::comm>(comm);
    meet<Kind::datatype>(datatype);
    return translated(buf, count, datatype, peer, tag, comm, last...);
}

FRONT_API int PMPI_Send(const void* buf, int count, A_Datatype datatype, int dest, int tag, A_Comm comm) {
    if (!front::are_plain_numbers(count, dest, tag))
        return Send_translated(buf, count, datatype, dest, tag, comm);
    CommObject* const on = comm_of(comm);
    TypeObject* const of = on != nullptr ? type_of(datatype) : nullptr;
    if (__builtin_expect(of == nullptr, 0))
        return meet_both<Send_translated>(buf, count, datatype, dest, tag, comm);
    DirectMessage call("MPI_Send", DirectMessage::kNotCarefulNorWatched, front::kSending);
    if (!call) return Send_translated(buf, count, datatype, dest, tag, comm);
    call.record()->waiting_for = call.count_sent_to(on, dest);
    int rc = call.below(front.direct.Send, buf, count, real_of(of), dest, tag, real_of(on));
    if (__builtin_expect(rc != 0, 0))
        return out_errclass(DirectMessage::send_failed(call.record(), on, tag, rc));
    call.up();
    return call.end();
}

// MPI_Isend and MPI_Irecv.
template <What what, auto translated, auto direct, typename Buffer>
__attribute__((always_inline)) inline int immediate(const char* function, Buffer* buf, int count,
                                                    A_Datatype datatype, int peer, int tag, A_Comm comm,
                                                    A_Request* request) {
    if (!front::are_plain_numbers(count, peer, tag) || __builtin_expect(request == nullptr, 0))
        return translated(buf, count, datatype, peer, tag, comm, request);
    CommObject* const on = comm_of(comm);
    TypeObject* const of = on != nullptr ? type_of(datatype) : nullptr;
    if (__builtin_expect(of == nullptr, 0))
        return meet_both<translated>(buf, count, datatype, peer, tag, comm, request);
    DirectMessage call(function, DirectMessage::kNotCarefulNorWatched);
    if (!call) return translated(buf, count, datatype, peer, tag, comm, request);
    front::RequestObject* const r = front::request_pool.first;
    if (__builtin_expect(r == nullptr, 0)) {
        call.give_up();
        return translated(buf, count, datatype, peer, tag, comm, request);
    }
    call.take<what>(r, buf, count, of, peer, tag, on);
    int rc = call.below(front.direct.*direct, buf, count, real_of(of), peer, tag, real_of(on),
                        front::real_request(r));
    if (__builtin_expect(rc != 0, 0)) return out_errclass(DirectMessage::begin_failed(call.record(), r, rc));
    call.up();
    *request = dynamic_handle(r);
    return call.end();
}
FRONT_API int PMPI_Isend(const void* buf, int count, A_Datatype datatype, int dest, int tag, A_Comm comm,
                         A_Request* request) {
    return immediate<What::send, Isend_translated, &mpi::Direct::Isend>("MPI_Isend", buf, count, datatype,
                                                                        dest, tag, comm, request);
}
FRONT_API int PMPI_Irecv(void* buf, int count, A_Datatype datatype, int source, int tag, A_Comm comm,
                         A_Request* request) {
    return immediate<What::recv, Irecv_translated, &mpi::Direct::Irecv>("MPI_Irecv", buf, count, datatype,
                                                                        source, tag, comm, request);
}

// Can the library write there? Where NULL is not MPI_STATUS_IGNORE, it is an error.
__attribute__((always_inline)) inline bool is_place(const A_Status* status) {
    return kStatusIgnore == nullptr || __builtin_expect(status != nullptr, 1);
}

// For how many bytes is there room?
__attribute__((always_inline)) inline uint64_t room_for(int64_t count, const TypeObject* type) {
    return static_cast<uint64_t>(count) * static_cast<uint64_t>(type->size);
}
// The library has begun it and says an error, or a checkpoint is on its way (-1).
FERMATA_COLD int recv_unfinished(split::ThreadRecord* record, CommObject* on, const TypeObject* of, void* buf,
                                 int count, int source, int tag, RealRequest open, A_Status* status, int rc) {
    if (rc > 0) return out_errclass(DirectMessage::receive_ended(record, on, source, rc));
    Status status_t{};
    rc =
        DirectMessage::receive_goes_on(record, buf, count, static_cast<Datatype>(of->handle), in_rank(source),
                                       in_tag(tag), on, open, status == kStatusIgnore ? nullptr : &status_t);
    if (status != kStatusIgnore && (rc == FM_SUCCESS || rc == FM_ERR_TRUNCATE)) out_status(status, status_t);
    return out_errclass(rc);
}
// From whom, the status says.
__attribute__((noinline)) inline int recv_from_any(split::ThreadRecord* record, CommObject* on,
                                                   const TypeObject* of, void* buf, int count, int tag,
                                                   A_Status* status) {
    DirectMessage call(record);
    A_Status own;
    A_Status* const said = status == kStatusIgnore ? &own : status;
    RealRequest open{};
    int rc = call.below(front.direct.Irecv, buf, count, real_of(of), kAnySource, tag, real_of(on), &open);
    if (__builtin_expect(rc != 0, 0))
        return out_errclass(DirectMessage::receive_failed(record, on, kAnySource, rc));
    rc = call.wait_for_receive(front.direct.Test, &open, said, room_for(count, of), [] { return -1; });
    if (__builtin_expect(rc != 0, 0))
        return recv_unfinished(record, on, of, buf, count, rc > 0 ? said->source : kAnySource, tag, open,
                               status, rc);
    front::count_received(call.slot(), on->world_of(said->source));
    return call.end();
}
FRONT_API int PMPI_Recv(void* buf, int count, A_Datatype datatype, int source, int tag, A_Comm comm,
                        A_Status* status) {
    if (!is_place(status)) return Recv_translated(buf, count, datatype, source, tag, comm, status);
    CommObject* const on = comm_of(comm);
    TypeObject* const of = on != nullptr ? type_of(datatype) : nullptr;
    if (__builtin_expect(of == nullptr, 0))
        return meet_both<Recv_translated>(buf, count, datatype, source, tag, comm, status);
    DirectMessage call("MPI_Recv", DirectMessage::kNotCareful);
    if (!call) return Recv_translated(buf, count, datatype, source, tag, comm, status);
    const int32_t world = on->world_of(source);
    if (__builtin_expect(world < 0 && source != kAnySource, 0) || !front::library_is_of(kFamily)) {
        call.give_up();
        return Recv_translated(buf, count, datatype, source, tag, comm, status);
    }
    if (__builtin_expect(world < 0, 0)) return recv_from_any(call.record(), on, of, buf, count, tag, status);
    RealRequest open{};
    int rc = call.below(front.direct.Irecv, buf, count, real_of(of), source, tag, real_of(on), &open);
    if (__builtin_expect(rc != 0, 0))
        return out_errclass(DirectMessage::receive_failed(call.record(), on, source, rc));
    rc = call.wait_for_receive(front.direct.Test, &open, status, room_for(count, of), [&] { return world; });
    if (__builtin_expect(rc != 0, 0))
        return recv_unfinished(call.record(), on, of, buf, count, source, tag, open, status, rc);
    call.slot().received_from(world);
    return call.end();
}

FERMATA_COLD Status status_of_failed(const A_Status* status) {
    Status status_t{};
    if (status != kStatusIgnore) in_status(&status_t, status);
    return status_t;
}
// Has the library nothing to say or do at the end of this request? (Real ones are not 0.)
__attribute__((always_inline)) inline bool ended_when_sent(uint64_t real) { return real == front.ended_send; }

// The library has begun both, and a checkpoint is on its way (-1), or the class of an error. `open`: the
// receive and the send, 0 what has ended.
FERMATA_COLD int exchange_unfinished(split::ThreadRecord* record, const front::Exchange& x,
                                     const RealRequest* open, A_Status* status, int rc) {
    Status status_t = status_of_failed(open[0] == RealRequest{} ? status : kStatusIgnore);
    status_t.error = rc > 0 ? rc : 0;
    rc = DirectMessage::exchange_goes_on(record, x, open, &status_t);
    if (status != kStatusIgnore && (rc == FM_SUCCESS || rc == FM_ERR_TRUNCATE)) out_status(status, status_t);
    return out_errclass(rc);
}
FRONT_API int PMPI_Sendrecv(const void* sendbuf, int sendcount, A_Datatype sendtype, int dest, int sendtag,
                            void* recvbuf, int recvcount, A_Datatype recvtype, int source, int recvtag,
                            A_Comm comm, A_Status* status) {
    const auto translated = [&] {
        return Sendrecv_translated(sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount, recvtype,
                                   source, recvtag, comm, status);
    };
    if (!front::are_plain_numbers(sendcount, dest, sendtag, recvcount, source, recvtag) || !is_place(status))
        return translated();
    CommObject* const on = comm_of(comm);
    TypeObject* const out = type_of(sendtype);
    TypeObject* const in = type_of(recvtype);
    if (__builtin_expect(on == nullptr || out == nullptr || in == nullptr, 0)) {
        meet<Kind::comm>(comm);
        meet<Kind::datatype>(sendtype);
        meet<Kind::datatype>(recvtype);
        return translated();
    }
    DirectMessage call("MPI_Sendrecv", DirectMessage::kNotCarefulNorWatched);
    if (!call) return translated();
    const int32_t from = on->world_of(source);
    if (__builtin_expect((from | on->world_of(dest)) < 0, 0) || !front::library_is_of(kFamily)) {
        call.give_up();
        return translated();
    }
    const auto asked = [&] {
        return front::Exchange{sendbuf, sendcount, static_cast<Datatype>(out->handle), dest,   sendtag,
                               recvbuf, recvcount, static_cast<Datatype>(in->handle),  source, recvtag,
                               on};
    };
    RealRequest open[2] = {};
    int rc = call.below(front.direct.Irecv, recvbuf, recvcount, real_of(in), source, recvtag, real_of(on),
                        &open[0]);
    if (__builtin_expect(rc != 0, 0))
        return out_errclass(DirectMessage::receive_failed(call.record(), on, source, rc));
    const int32_t to = call.count_sent_to(on, dest);
    rc = call.below(front.direct.Isend, sendbuf, sendcount, real_of(out), dest, sendtag, real_of(on),
                    &open[1]);
    if (__builtin_expect(rc != 0, 0))
        return out_errclass(DirectMessage::exchange_refused(call.record(), asked(), open[0], rc));
    if (ended_when_sent(static_cast<uint64_t>(open[1]))) open[1] = {};
    rc = call.wait_for_receive(front.direct.Test, &open[0], status, room_for(recvcount, in),
                               [&] { return from; });
    if (rc >= 0) open[0] = {};
    if (rc == 0 && open[1] != RealRequest{}) {
        rc = call.wait(front.direct.TestAnother, &open[1], kStatusIgnore, [&] { return to; });
        // A failed send decides the result of the call; it has ended.
        if (__builtin_expect(rc > 0, 0)) open[1] = {};
    }
    if (__builtin_expect(rc != 0, 0)) return exchange_unfinished(call.record(), asked(), open, status, rc);
    call.slot().received_from(from);
    return call.end();
}

// A probe leaves nothing behind: whatever it does not find is the translated tier's.
FRONT_API int PMPI_Iprobe(int source, int tag, A_Comm comm, int* flag, A_Status* status) {
    CommObject* const on = comm_of(comm);
    if (__builtin_expect(on == nullptr || flag == nullptr, 0) || !is_place(status)) {
        meet<Kind::comm>(comm);
        return Iprobe_translated(source, tag, comm, flag, status);
    }
    DirectMessage call("MPI_Iprobe", DirectMessage::kNotCareful);
    if (!call) return Iprobe_translated(source, tag, comm, flag, status);
    if (!front::library_is_of(kFamily)) {
        call.give_up();
        return Iprobe_translated(source, tag, comm, flag, status);
    }
    const int rc =
        call.below(front.direct.Iprobe, source, tag, real_of(on), flag, static_cast<void*>(status));
    if (__builtin_expect(rc != 0, 0)) return out_errclass(DirectMessage::probe_failed(call.record(), on, rc));
    call.up();
    return call.end();
}
FRONT_API int PMPI_Probe(int source, int tag, A_Comm comm, A_Status* status) {
    CommObject* const on = comm_of(comm);
    if (__builtin_expect(on == nullptr, 0) || !is_place(status)) {
        meet<Kind::comm>(comm);
        return Probe_translated(source, tag, comm, status);
    }
    DirectMessage call("MPI_Probe", DirectMessage::kNotCareful);
    if (!call) return Probe_translated(source, tag, comm, status);
    int found = 0;
    if (front::library_is_of(kFamily)) {
        call.record()->waiting_for = on->world_of(source);
        int rc = 0;
        for (int turns = DirectMessage::kTurns; turns > 0 && found == 0 && front.attention == 0 && rc == 0;
             --turns)
            rc =
                call.below(front.direct.Iprobe, source, tag, real_of(on), &found, static_cast<void*>(status));
        if (__builtin_expect(rc != 0, 0))
            return out_errclass(DirectMessage::probe_failed(call.record(), on, rc));
        call.up();
    }
    if (__builtin_expect(found != 0, 1)) return call.end();
    call.end();
    return Probe_translated(source, tag, comm, status);
}

// The next message of a persistent request with nothing special about it.
template <What what, auto direct>
__attribute__((always_inline)) inline int begin_again(const DirectMessage& call, front::RequestObject* r) {
    call.take_again<what>(r);
    return call.below(front.direct.*direct, r->buf, static_cast<int>(r->count), real_of(r->type), r->peer,
                      r->tag, real_of(r->comm), front::real_request(r));
}
// False: it is the translated tier's. `rc`: of the library.
__attribute__((always_inline)) inline bool start_message(const DirectMessage& call, A_Request handle,
                                                         front::RequestObject** request, int* rc) {
    auto* const r = static_cast<front::RequestObject*>(request_of(front::table_of(Kind::request), handle));
    if (__builtin_expect(r == nullptr, 0) || !front::are_plain_numbers(r->count, r->peer, r->tag))
        return false;
    const uint32_t head = front::word_of(r);
    *request = r;
    if (head == front::head_word(What::send, front::State::inactive, front::kPersistent))
        *rc = begin_again<What::send, &mpi::Direct::Isend>(call, r);
    else if (head == front::head_word(What::recv, front::State::inactive, front::kPersistent))
        *rc = begin_again<What::recv, &mpi::Direct::Irecv>(call, r);
    else
        return false;
    return true;
}
FRONT_API int PMPI_Start(A_Request* request) {
    if (__builtin_expect(request == nullptr, 0)) return Start_translated(request);
    DirectMessage call("MPI_Start", DirectMessage::kNotCarefulNorWatched);
    if (!call) return Start_translated(request);
    front::RequestObject* r;
    int rc;
    if (__builtin_expect(!start_message(call, *request, &r, &rc), 0)) {
        call.give_up();
        return Start_translated(request);
    }
    if (__builtin_expect(rc != 0, 0)) return out_errclass(DirectMessage::start_failed(call.record(), r, rc));
    call.up();
    return call.end();
}
FRONT_API int PMPI_Startall(int count, A_Request* requests) {
    if (__builtin_expect(count <= 0 || requests == nullptr, 0)) return Startall_translated(count, requests);
    DirectMessage call("MPI_Startall", DirectMessage::kNotCarefulNorWatched);
    if (!call) return Startall_translated(count, requests);
    for (int i = 0; i < count; i++) {
        front::RequestObject* r;
        int rc;
        if (__builtin_expect(!start_message(call, requests[i], &r, &rc), 0)) {
            call.end();
            return Startall_translated(count - i, requests + i);
        }
        if (__builtin_expect(rc != 0, 0))
            return out_errclass(DirectMessage::start_failed(call.record(), r, rc));
        call.up();
    }
    return call.end();
}

}  // namespace fermata::abi
