// The point-to-point entries that programs call most, each as one function from the application to the
// library: the short forms of front/p2p/short_message.h on objects found by the ABI's own handles. Included
// once, by the generated point-to-point source of an ABI, whose X_translated is the usual way: for special
// ranks, tags and requests, handles that were not met before, statuses of another library, a checkpoint on
// its way.
#pragma once

#include "front/abi/objects.h"
#include "front/p2p/short_message.h"

namespace fermata::abi {

using front::CommObject;
using front::front;
using front::real_of;
using front::ShortMessage;
using front::TypeObject;
using front::What;

#define FERMATA_COLD static __attribute__((noinline, cold))

__attribute__((always_inline)) inline CommObject* comm_of(A_Comm handle) {
    return static_cast<CommObject*>(object_of<Kind::comm>(handle));
}
__attribute__((always_inline)) inline TypeObject* type_of(A_Datatype handle) {
    return static_cast<TypeObject*>(object_of<Kind::datatype>(handle));
}
// The usual way, which knows the handles from now on.
template <auto usual, typename Buffer, typename... Last>
__attribute__((noinline, cold)) int meet_both(Buffer* buf, int count, A_Datatype datatype, int peer, int tag,
                                              A_Comm comm, Last... last) {
    meet<Kind::comm>(comm);
    meet<Kind::datatype>(datatype);
    return usual(buf, count, datatype, peer, tag, comm, last...);
}

FRONT_API int PMPI_Send(const void* buf, int count, A_Datatype datatype, int dest, int tag, A_Comm comm) {
    if (!front::are_plain_numbers(count, dest, tag))
        return Send_translated(buf, count, datatype, dest, tag, comm);
    CommObject* const on = comm_of(comm);
    TypeObject* const of = on != nullptr ? type_of(datatype) : nullptr;
    if (__builtin_expect(of == nullptr, 0))
        return meet_both<Send_translated>(buf, count, datatype, dest, tag, comm);
    ShortMessage call("MPI_Send", ShortMessage::kSlowAndWatch, front::kSending);
    if (!call) return Send_translated(buf, count, datatype, dest, tag, comm);
    call.record()->waiting_for = call.count_sent_to(on, dest);
    int rc = call.below(front.direct.Send, buf, count, real_of(of), dest, tag, real_of(on));
    if (__builtin_expect(rc != 0, 0))
        return out_errclass(ShortMessage::send_failed(call.record(), on, tag, rc));
    call.up();
    return call.end();
}

// MPI_Isend and MPI_Irecv.
template <What what, auto usual, auto direct, typename Buffer>
__attribute__((always_inline)) inline int immediate(const char* function, Buffer* buf, int count,
                                                    A_Datatype datatype, int peer, int tag, A_Comm comm,
                                                    A_Request* request) {
    if (!front::are_plain_numbers(count, peer, tag) || __builtin_expect(request == nullptr, 0))
        return usual(buf, count, datatype, peer, tag, comm, request);
    CommObject* const on = comm_of(comm);
    TypeObject* const of = on != nullptr ? type_of(datatype) : nullptr;
    if (__builtin_expect(of == nullptr, 0))
        return meet_both<usual>(buf, count, datatype, peer, tag, comm, request);
    ShortMessage call(function, ShortMessage::kSlowAndWatch);
    if (!call) return usual(buf, count, datatype, peer, tag, comm, request);
    front::Request* const r = front::request_pool.first;
    if (__builtin_expect(r == nullptr, 0)) {
        call.give_up();
        return usual(buf, count, datatype, peer, tag, comm, request);
    }
    call.take<what>(r, buf, count, of, peer, tag, on);
    int rc = call.below(front.direct.*direct, buf, count, real_of(of), peer, tag, real_of(on),
                        front::real_request(r));
    if (__builtin_expect(rc != 0, 0)) return out_errclass(ShortMessage::begin_failed(call.record(), r, rc));
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

// The library has begun it and says an error, or a checkpoint is on its way (-1).
FERMATA_COLD int recv_unfinished(split::ThreadRecord* record, CommObject* on, const TypeObject* of, void* buf,
                                 int count, int source, int tag, RealRequest open, A_Status* status, int rc) {
    if (rc > 0) return out_errclass(ShortMessage::receive_ended(record, on, source, rc));
    Status status_t{};
    rc = ShortMessage::receive_goes_on(record, buf, count, static_cast<Datatype>(of->handle), source, tag, on,
                                       open, status == kStatusIgnore ? nullptr : &status_t);
    if (status != kStatusIgnore && (rc == FM_SUCCESS || rc == FM_ERR_TRUNCATE)) out_status(status, status_t);
    return out_errclass(rc);
}
FRONT_API int PMPI_Recv(void* buf, int count, A_Datatype datatype, int source, int tag, A_Comm comm,
                        A_Status* status) {
    if (!front::are_plain_numbers(count, source, tag) || !is_place(status))
        return Recv_translated(buf, count, datatype, source, tag, comm, status);
    CommObject* const on = comm_of(comm);
    TypeObject* const of = on != nullptr ? type_of(datatype) : nullptr;
    if (__builtin_expect(of == nullptr, 0))
        return meet_both<Recv_translated>(buf, count, datatype, source, tag, comm, status);
    ShortMessage call("MPI_Recv", ShortMessage::kSlow);
    if (!call) return Recv_translated(buf, count, datatype, source, tag, comm, status);
    const int32_t world = on->world_of(source);
    if (__builtin_expect(world < 0, 0) || !front::library_is_of(kFamily)) {
        call.give_up();
        return Recv_translated(buf, count, datatype, source, tag, comm, status);
    }
    RealRequest open{};
    int rc = call.below(front.direct.Irecv, buf, count, real_of(of), source, tag, real_of(on), &open);
    if (__builtin_expect(rc != 0, 0))
        return out_errclass(ShortMessage::receive_failed(call.record(), on, source, rc));
    rc = call.wait(front.direct.Test, &open, status, [&] { return world; });
    if (__builtin_expect(rc != 0, 0))
        return recv_unfinished(call.record(), on, of, buf, count, source, tag, open, status, rc);
    call.slot().received_from(world);
    return call.end();
}

// A request for a message that can be waited for in place: with the statuses of the library and one branch at
// its end. Null for all others.
__attribute__((always_inline)) inline front::Request* message_of(const front::HandleTable& requests,
                                                                 A_Request handle) noexcept {
    auto* const r = static_cast<front::Request*>(request_of(requests, handle));
    if (__builtin_expect(r == nullptr || r->real == 0, 0)) return nullptr;
    const uint32_t head = front::word_of(r);
    if (head == front::head_word(What::send, front::State::active)) return r;
    return head == front::head_word(What::recv, front::State::active) && r->world >= 0 ? r : nullptr;
}
FERMATA_COLD Status status_of_failed(const A_Status* status) {
    Status status_t{};
    if (status != kStatusIgnore) in_status(&status_t, status);
    return status_t;
}
// Has the library nothing to say or do at its end? (Real requests are not 0.)
__attribute__((always_inline)) inline bool has_ended(const front::Request* r) {
    return r->real == front.ended_send;
}
// False: what is left to do is the usual way's.
__attribute__((always_inline)) inline bool end_message(const ShortMessage& call,
                                                       ShortMessage::TestFunction test, front::Request* r,
                                                       A_Status* status) {
    const int rc = call.wait(test, front::real_request(r), status, [&] { return r->world; });
    if (__builtin_expect(rc != 0, 0)) {
        if (rc > 0) ShortMessage::wait_failed(call.record(), r, status_of_failed(status), rc);
        return false;
    }
    call.ended(r);
    return true;
}

FRONT_API int PMPI_Wait(A_Request* request, A_Status* status) {
    if (__builtin_expect(request == nullptr, 0) || !is_place(status)) return Wait_translated(request, status);
    ShortMessage call("MPI_Wait", ShortMessage::kSlowAndWatch);
    if (!call) return Wait_translated(request, status);
    front::Request* const r = message_of(front::table_of(Kind::request), *request);
    if (__builtin_expect(r == nullptr, 0) || !front::library_is_of(kFamily)) {
        call.give_up();
        return Wait_translated(request, status);
    }
    if (status == kStatusIgnore && has_ended(r)) {
        call.ended(r);
    } else if (__builtin_expect(!end_message(call, front.direct.Test, r, status), 0)) {
        call.end();
        return Wait_translated(request, status);
    }
    *request = out_Request(FM_REQUEST_NULL);
    return call.end();
}

// What the short form has left of an array, whose first `ended` have ended well.
FERMATA_COLD int waitall_rest(int count, int ended, A_Request* requests, A_Status* statuses) {
    const bool ignored = statuses == kStatusIgnore;
    const int rc = Waitall_translated(count - ended, requests == nullptr ? nullptr : requests + ended,
                                      ignored ? statuses : statuses + ended);
    if (rc == out_errclass(FM_ERR_IN_STATUS) && !ignored)
        for (int i = 0; i < ended; i++) statuses[i].error = 0;
    return rc;
}
template <bool ignored>
__attribute__((always_inline)) inline int waitall(int count, A_Request* requests, A_Status* statuses) {
    ShortMessage call("MPI_Waitall", ShortMessage::kSlowAndWatch);
    if (!call) return waitall_rest(count, 0, requests, statuses);
    if (!front::library_is_of(kFamily)) {
        call.give_up();
        return waitall_rest(count, 0, requests, statuses);
    }
    ShortMessage::TestFunction test = front.direct.Test;
    A_Request *next = requests, *const end = requests + count;
    for (;;) {
        front::Request* const r = message_of(front::table_of(Kind::request), *next);
        if (__builtin_expect(r != nullptr, 1)) {
            if (ignored && has_ended(r)) {
                call.ended(r);
            } else {
                if (!end_message(call, test, r, ignored ? kStatusIgnore : statuses + (next - requests)))
                    break;
                test = front.direct.TestAnother;
            }
            *next = out_Request(FM_REQUEST_NULL);
        } else if (!ignored || *next != out_Request(FM_REQUEST_NULL)) {
            break;
        }
        if (++next == end) return call.end();
    }
    call.end();
    return waitall_rest(count, static_cast<int>(next - requests), requests, statuses);
}
FERMATA_COLD int waitall_with_statuses(int count, A_Request* requests, A_Status* statuses) {
    if (!is_place(statuses)) return waitall_rest(count, 0, requests, statuses);
    return waitall<false>(count, requests, statuses);
}
FRONT_API int PMPI_Waitall(int count, A_Request* requests, A_Status* statuses) {
    if (__builtin_expect(count <= 0 || requests == nullptr, 0))
        return waitall_rest(count, 0, requests, statuses);
    if (statuses != kStatusIgnore) return waitall_with_statuses(count, requests, statuses);
    return waitall<true>(count, requests, statuses);
}

FRONT_API int PMPI_Test(A_Request* request, int* flag, A_Status* status) {
    if (__builtin_expect(request == nullptr || flag == nullptr, 0) || !is_place(status))
        return Test_translated(request, flag, status);
    ShortMessage call("MPI_Test", ShortMessage::kSlowAndWatch);
    if (!call) return Test_translated(request, flag, status);
    front::Request* const r = message_of(front::table_of(Kind::request), *request);
    if (__builtin_expect(r == nullptr, 0) || !front::library_is_of(kFamily)) {
        call.give_up();
        return Test_translated(request, flag, status);
    }
    const int rc = call.below(front.direct.Test, front::real_request(r), flag, static_cast<void*>(status));
    if (__builtin_expect(rc != 0, 0)) {
        ShortMessage::test_failed(call.record(), r, status_of_failed(status), rc);
        call.end();
        return Test_translated(request, flag, status);
    }
    call.up();
    if (*flag == 0) return call.end();
    call.ended(r);
    *request = out_Request(FM_REQUEST_NULL);
    return call.end();
}

#undef FERMATA_COLD

}  // namespace fermata::abi
