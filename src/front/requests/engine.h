// The engine of point-to-point: pulled messages, waits that can be stopped, the drain and the restart of
// requests.
//
// Three tiers (docs/internals/point-to-point.md has the table). A *direct* or *translated* call makes one
// branch on Front::careful and one crossing. While a checkpoint is pending (or pulled messages are left over
// from one) calls are *careful*: every call into the lower half is made under the library's lock, in a loop
// in upper code that pulls what arrives, tells the collective clock what it waits for, and offers stop
// points. Posting a receive and pulling a message must not overlap: a message pulled between "nothing in the
// queue" and "posted" would be overtaken by a later one. The lock excludes that between careful calls;
// threads still inside a direct or translated one are waited for (others_quiet), which is exact because a
// thread stores `in_mpi` before it looks at `careful`, and the agent fences (membarrier) between setting
// `careful` and `armed`.
#pragma once

#include "base/naps.h"
#include "clock/clock.h"
#include "front/core/library_lock.h"
#include "front/core/lower.h"
#include "front/requests/collective.h"
#include "front/requests/request.h"
#include "front/requests/synchronous.h"

namespace fermata::front {

struct Engine {
    MessageQueue queue;
    volatile uint32_t armed;  // the fence after setting `careful` is done: pulling is allowed
    volatile uint32_t take;   // all ranks are frozen: messages may be taken for good
    RequestObject* orphans;   // freed while active
    uint64_t self_comm;       // private duplicate of MPI_COMM_SELF for deliveries; 0 = not made yet
};
extern Engine engine;

inline mpi::RealDatatype real_byte() noexcept { return to_real(mpi::FM_BYTE); }
// A receive's place in the order of posting, in which a restart posts it again.
inline void note_posted(RequestObject* r) noexcept {
    r->posted = front.threads != 0 ? __atomic_add_fetch(&request_pool.posts, 1, __ATOMIC_RELAXED)
                                   : ++request_pool.posts;
}

inline mpi::RealRequest* real_request(RequestObject* r) noexcept {
    return reinterpret_cast<mpi::RealRequest*>(&r->real);
}

inline void count_received(clock::Slot& slot, int32_t world) noexcept {
    if (__builtin_expect(static_cast<uint32_t>(world) < static_cast<uint32_t>(front.world_size), 1))
        slot.received_from(world);
}
// The collective clock's label of a message; any, when the communicator is not counted (yet).
inline clock::Labels label_of(const CommObject* comm, int tag) noexcept {
    if (tag == mpi::FM_ANY_TAG || comm->clock == nullptr) return clock::kAnyLabel;
    return clock::label_of(comm->clock->uid, tag);
}
// The rest of counting a message, for programs that need more than its number.
void count_watched(clock::Slot& slot, int32_t world, const CommObject* comm, int tag,
                   RequestObject* r) noexcept;
// `r`: what may be cancelled.
inline void count_sent(clock::Slot& slot, int32_t world, const CommObject* comm, int tag,
                       RequestObject* r = nullptr) noexcept {
    if (static_cast<uint32_t>(world) >= static_cast<uint32_t>(front.world_size)) return;
    slot.sent_to(world);
    if (__builtin_expect(front.watch != 0, 0)) count_watched(slot, world, comm, tag, r);
}
// A send that MPI refused or that was cancelled never became a message. Modulo 2^64 it does not matter whose
// slot it was counted in.
void uncount_sent(clock::Slot& slot, int32_t world, const CommObject* comm, int tag) noexcept;
void uncount_sent(clock::Slot& slot, const RequestObject* r) noexcept;

inline int32_t match_source(int source) noexcept { return source == mpi::FM_ANY_SOURCE ? kAny : source; }
inline int32_t match_tag(int tag) noexcept { return tag == mpi::FM_ANY_TAG ? kAny : tag; }

// May the caller pull messages and test requests of others? `self` null: the agent.
bool others_quiet(const split::ThreadRecord* self) noexcept;
// Receives what has arrived into the queue; nothing when others are not quiet. `slot` counts.
void pull(const split::ThreadRecord* self, clock::Slot& slot) noexcept;
// The same, others quiet.
void pull_all(clock::Slot& slot) noexcept FERMATA_WANTS(library_lock);
// Tests every posted receive, so that the ledger knows what has really arrived. Under the same condition.
void sweep_receives(const split::ThreadRecord* self, clock::Slot& slot) noexcept;

// ---- the life of one operation

// Hands a send to the lower half (counted first). Not for buffered mode's copy: see buffered.h.
__attribute__((always_inline)) inline int start_send(RequestObject* r, clock::Slot& slot) noexcept {
    if (__builtin_expect(r->peer == mpi::FM_PROC_NULL, 0)) {
        proc_null_status(&r->status);
        r->state = State::complete;
        return 0;
    }
    count_sent(slot, r->world, r->comm, r->tag, r);
    int rc;
    switch (r->mode) {
        case kSynchronous:
            channel_open(r);
            rc = LOWER(Issend)(r->buf, r->count, real_of(r->type), r->peer, r->tag, real_of(r->comm),
                               real_request(r));
            break;
        default:
            // Ready mode too: the receive that makes it ready may wait in our queue only, so the promise need
            // not hold for the lower half. A standard send is always allowed in its place.
            rc = LOWER(Isend)(r->buf, r->count, real_of(r->type), r->peer, r->tag, real_of(r->comm),
                              real_request(r));
    }
    if (__builtin_expect(rc != 0, 0)) {
        uncount_sent(slot, r);
        if (r->mode == kSynchronous) channel_close(r);
    }
    return rc;
}
// Posts a receive, or takes its message from the queue. In the careful tier (library_lock taken inside).
int start_recv_carefully(RequestObject* r, clock::Slot& slot) noexcept;
__attribute__((always_inline)) inline int start_recv(RequestObject* r, clock::Slot& slot) noexcept {
    if (__builtin_expect(careful_tier() || r->peer == mpi::FM_PROC_NULL, 0))
        return start_recv_carefully(r, slot);
    note_posted(r);
    r->matched = nullptr;
    return LOWER(Irecv)(r->buf, r->count, real_of(r->type), r->peer, r->tag, real_of(r->comm),
                        real_request(r));
}
// Result of the lower half into the request: `real` is gone.
void note_complete(RequestObject* r, const mpi::Status& status, int error, clock::Slot& slot) noexcept;
// Does nobody need the status of this one when it completes in the lower half?
inline bool status_unneeded(const RequestObject* r) noexcept {
    return (r->flags & kCancelled) == 0 &&
           (r->what != What::recv || r->world >= 0 || r->peer == mpi::FM_PROC_NULL);
}
// Asks the lower half (or the queue) once; true when complete. Library's lock held, or in the translated
// tier.
bool advance(RequestObject* r, clock::Slot& slot) noexcept FERMATA_LOCKS_UNSEEN;
// Asks the clock whether the application may hear of a complete request; only collectives can be refused.
// `wait`: park until it may.
bool may_tell(RequestObject* r, split::ThreadRecord* record, bool wait) noexcept;
// Tells the application: status out, handle null (or persistent: inactive). Returns the operation's error.
int consume_other(RequestObject* r, mpi::Request* handle, mpi::Status* status) noexcept;
__attribute__((always_inline)) inline int consume(RequestObject* r, mpi::Request* handle,
                                                  mpi::Status* status) noexcept {
    if (__builtin_expect((r->flags & kPersistent) != 0 || r->what == What::generalized, 0))
        return consume_other(r, handle, status);
    int error = r->error;
    if (status != nullptr) {
        *status = r->status;
        status->error = error;
    }
    release_request(r);
    if (handle != nullptr) *handle = mpi::FM_REQUEST_NULL;
    return error;
}

// RealComm: a duplicate of MPI_COMM_SELF for copies through the real datatype engine, which nobody pulls
// from.
uint64_t self_comm() noexcept FERMATA_WANTS(library_lock);
// Delivers a pulled message into a user's buffer through the real datatype engine.
int deliver(QueuedMessage* message, void* buf, int64_t count, TypeObject* type, mpi::Status* status) noexcept
    FERMATA_WANTS(library_lock);
// May messages be taken from the lower half for good, which completes their senders' synchronous sends?
inline bool may_take() noexcept {
    return engine.take != 0 || (front.clock->known() && !front.clock->job_sends_synchronously());
}
// Asks for the bytes of a held message.
void fetch(QueuedMessage* message) noexcept FERMATA_WANTS(library_lock);
// Does the pulled message have all its bytes? Tests once.
bool arrived(QueuedMessage* message) noexcept FERMATA_WANTS(library_lock);
// Keeps kQueued in step.
void queue_changed() noexcept FERMATA_WANTS(library_lock);

// Drops pulled messages that nobody can receive any more: the application's last reference to the
// communicator is gone.
void forget_messages(CommObject& comm) noexcept;

// A request that nobody holds (freed while active, or the copy of a buffered send): returned when complete.
void link_orphan(RequestObject* r) noexcept FERMATA_WANTS(library_lock);
// Takes the lock.
void adopt_orphan(RequestObject* r) noexcept;
// Returns complete orphans. How many of mode buffered are still open.
uint64_t reap_orphans(clock::Slot& slot) noexcept FERMATA_WANTS(library_lock);

// ---- waiting

// One blocked call of the careful tier: create it after the translated tier has given up, and call turn()
// until it is done.
class Waiter {
  public:
    explicit Waiter(Call& call) noexcept : call_(call) {}
    ~Waiter();
    Waiter(const Waiter&) = delete;
    Waiter& operator=(const Waiter&) = delete;

    // Facts that the wait depends on, to be said before turn() each time (a restart changes nothing of them).
    struct Needs {
        const int32_t* world = nullptr;  // a message from this world rank
        clock::Labels wanted = clock::kAnyLabel;
        RequestObject* const* requests =
            nullptr;  // or whatever these (null entries, complete ones are skipped) need
        int request_count = 0;
        bool any = false;  // anything might end the wait: wildcard, Waitany
    };
    // Offers a stop point, pulls, tells the clock what is needed, naps. Without a pending checkpoint: yields.
    void turn(const Needs& needs) noexcept;

  private:
    void say_needs(const Needs& needs, clock::Slot& slot) noexcept;
    Call& call_;
    clock::WaitSite site_;
    uint32_t turns_ = 0;
    Naps naps_{50};
};

// Agent: threads inside a blocking send of the library cannot say themselves that they need their receiver.
void ask_for_captives(uint64_t now_ns) noexcept;

// A Test or Probe that has to answer "no" while a checkpoint is pending: gives the protocol its turn.
void poll_failed(Call& call, RequestObject* const* requests = nullptr, int count = 0) noexcept;
inline void poll_succeeded(Call& call) noexcept {
    if (__builtin_expect(pending_checkpoint(), 0)) front.clock->polled(slot_of(call.record()));
}

// Waits until the request is complete and may be told. `all` are those that the call waits for besides: what
// they need is said with it.
void wait_complete(Call& call, RequestObject* r, RequestObject* const* all = nullptr, int count = 0) noexcept;

// ---- the checkpoint (agent) and the restart (lower main thread)

void engine_drain(split::DrainReport* report) noexcept;
int engine_rebuild(char* error, size_t size) noexcept;

}  // namespace fermata::front
