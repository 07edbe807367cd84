// Sends. A direct or translated blocking send is the real one: the thread may be held in the lower half,
// where the peer's pull sets it free. While a checkpoint is pending it is a non-blocking one and a wait that
// can be stopped.
#include "front/requests/operations.h"

namespace fermata::front {
namespace {

// A send as a request, waited for.
__attribute__((noinline)) int send_carefully(Call& call, SendMode mode, const void* buf, Count count,
                                             Datatype type, int dest, int tag, CommObject* c) noexcept {
    RequestObject* r = describe(What::send, buf, count, type, dest, tag, c);
    r->mode = mode;
    return run_blocking(call, r, nullptr);
}

// In the translated tier.
__attribute__((always_inline)) inline int send_now(split::ThreadRecord* record, CommObject* c,
                                                   const void* buf, Count count, Datatype type, int dest,
                                                   int tag) noexcept {
    int32_t world = c->world_of(dest);
    record->waiting_for = world;
    clock::Slot& slot = slot_of(record);
    count_sent(slot, world, c, tag);
    record->mode = kSending;
    int rc = LOWER(Send)(buf, count, to_real(type), dest, tag, real_of(c));
    record->mode = kUnlocked;
    if (__builtin_expect(rc != 0, 0)) uncount_sent(slot, world, c, tag);
    return rc;
}

__attribute__((always_inline)) inline int blocking_send(Call& call, const void* buf, Count count,
                                                        Datatype type, int dest, int tag,
                                                        Comm comm) noexcept {
    CommObject* c = find(comm);
    if (__builtin_expect(c == nullptr, 0)) return FM_ERR_COMM;
    if (careful_tier()) return send_carefully(call, kStandard, buf, count, type, dest, tag, c);
    return send_now(call.record(), c, buf, count, type, dest, tag);
}

__attribute__((noinline)) int send_as_call(const char* function, const void* buf, Count count, Datatype type,
                                           int dest, int tag, Comm comm) noexcept {
    Call call(function);
    return call.finish(comm, blocking_send(call, buf, count, type, dest, tag, comm));
}
int persistent(What what, SendMode mode, const void* buf, Count count, Datatype type, int peer, int tag,
               Comm comm, mpi::Request* request) noexcept {
    CommObject* c = find(comm);
    if (c == nullptr) return FM_ERR_COMM;
    if (find(type) == nullptr) return FM_ERR_TYPE;
    if (count < 0) return FM_ERR_COUNT;
    int peers = static_cast<int>(c->peers().size());
    bool wild = what == What::recv && peer == FM_ANY_SOURCE;
    if (peer != FM_PROC_NULL && !wild && (peer < 0 || peer >= peers)) return FM_ERR_RANK;
    if (tag < 0 && !(what == What::recv && tag == FM_ANY_TAG)) return FM_ERR_TAG;
    RequestObject* r = describe(what, buf, count, type, peer, tag, c);
    r->mode = mode;
    if (logged::on()) {
        r->serial = mode == kSynchronous ? 1 : 0;  // told by receipts of the log
        if (mode == kSynchronous) r->mode = kStandard;
    }
    make_persistent(r);
    *request = handle_of(r);
    return 0;
}

}  // namespace

extern "C" {

int fm_Send(const void* buf, Count count, Datatype datatype, int dest, int tag, Comm comm) {
    DirectMessage call("MPI_Send", DirectMessage::kNotCarefulNorWatched, kSending);
    if (!call) return send_as_call("MPI_Send", buf, count, datatype, dest, tag, comm);
    CommObject* const c = find(comm);
    const RealDatatype type = to_real(datatype);
    if (__builtin_expect(c == nullptr, 0) || !all_plain(type)) {
        call.give_up();
        return send_as_call("MPI_Send", buf, count, datatype, dest, tag, comm);
    }
    const int32_t world = call.count_sent_to(c, dest);
    call.record()->waiting_for = world;
    int rc = are_plain_numbers(count, dest, tag)
                 ? call.direct(front.direct.Send, buf, static_cast<int>(count), type, dest, tag, real_of(c))
                 : call.lower(front.table->Send, buf, count, type, dest, tag, real_of(c));
    if (__builtin_expect(rc != 0, 0)) uncount_sent(call.slot(), world, c, tag);
    return call.end(rc, c);
}
int fm_Ssend(const void* buf, Count count, Datatype datatype, int dest, int tag, Comm comm) {
    Call call("MPI_Ssend");
    CommObject* c = find(comm);
    if (c == nullptr) return call.finish(comm, FM_ERR_COMM);
    // Never held in the lower half: when a checkpoint takes the message, its end there means nothing.
    before_synchronous(call);
    call.record()->waiting_for = c->world_of(dest);
    return call.finish(comm, send_carefully(call, kSynchronous, buf, count, datatype, dest, tag, c));
}
// Ready mode is a promise that a standard send need not use.
int fm_Rsend(const void* buf, Count count, Datatype datatype, int dest, int tag, Comm comm) {
    Call call("MPI_Rsend");
    return call.finish(comm, blocking_send(call, buf, count, datatype, dest, tag, comm));
}
int fm_Bsend(const void* buf, Count count, Datatype datatype, int dest, int tag, Comm comm) {
    Call call("MPI_Bsend");
    CommObject* c = find(comm);
    if (c == nullptr) return call.finish(comm, FM_ERR_COMM);
    RequestObject* r = describe(What::send, buf, count, datatype, dest, tag, c);
    r->mode = kBuffered;
    int rc = begin(call, r);
    if (rc == 0) consume(r, nullptr, nullptr);
    return call.finish(comm, rc);
}

int fm_Isend(const void* buf, Count count, Datatype datatype, int dest, int tag, Comm comm,
             mpi::Request* request) {
    return immediate_at_once<What::send>("MPI_Isend", &mpi::Direct::Isend, &mpi::Table::Isend, buf, count,
                                         datatype, dest, tag, comm, request);
}
int fm_Issend(const void* buf, Count count, Datatype datatype, int dest, int tag, Comm comm,
              mpi::Request* request) {
    Call call("MPI_Issend");
    before_synchronous(call);
    return call.finish(
        comm, immediate(call, What::send, kSynchronous, buf, count, datatype, dest, tag, comm, request));
}
int fm_Irsend(const void* buf, Count count, Datatype datatype, int dest, int tag, Comm comm,
              mpi::Request* request) {
    Call call("MPI_Irsend");
    return call.finish(comm,
                       immediate(call, What::send, kReady, buf, count, datatype, dest, tag, comm, request));
}
int fm_Ibsend(const void* buf, Count count, Datatype datatype, int dest, int tag, Comm comm,
              mpi::Request* request) {
    Call call("MPI_Ibsend");
    return call.finish(
        comm, immediate(call, What::send, kBuffered, buf, count, datatype, dest, tag, comm, request));
}

int fm_Send_init(const void* buf, Count count, Datatype datatype, int dest, int tag, Comm comm,
                 mpi::Request* request) {
    Call call("MPI_Send_init");
    return call.finish(comm,
                       persistent(What::send, kStandard, buf, count, datatype, dest, tag, comm, request));
}
int fm_Ssend_init(const void* buf, Count count, Datatype datatype, int dest, int tag, Comm comm,
                  mpi::Request* request) {
    Call call("MPI_Ssend_init");
    before_synchronous(call);
    return call.finish(comm,
                       persistent(What::send, kSynchronous, buf, count, datatype, dest, tag, comm, request));
}
int fm_Rsend_init(const void* buf, Count count, Datatype datatype, int dest, int tag, Comm comm,
                  mpi::Request* request) {
    Call call("MPI_Rsend_init");
    return call.finish(comm, persistent(What::send, kReady, buf, count, datatype, dest, tag, comm, request));
}
int fm_Bsend_init(const void* buf, Count count, Datatype datatype, int dest, int tag, Comm comm,
                  mpi::Request* request) {
    Call call("MPI_Bsend_init");
    return call.finish(comm,
                       persistent(What::send, kBuffered, buf, count, datatype, dest, tag, comm, request));
}
int fm_Recv_init(void* buf, Count count, Datatype datatype, int source, int tag, Comm comm,
                 mpi::Request* request) {
    Call call("MPI_Recv_init");
    return call.finish(comm,
                       persistent(What::recv, kStandard, buf, count, datatype, source, tag, comm, request));
}

}  // extern "C"

}  // namespace fermata::front
