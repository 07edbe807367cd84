// A point-to-point entry, or any other of one request, as long as all goes well: in the direct tier, or first
// in the translated one.
//
//     DirectMessage call("MPI_Send", DirectMessage::kNotCarefulNorWatched);
//     if (!call) return send_as_call(...);                     // with Call
//     if (<arguments will not do>) return call.give_up(), send_as_call(...);
//     rc = call.direct(front.direct.Send, ...);
//     return call.end(rc, comm);
//
// The entries of the ABIs (front/abi/direct_message.h) end in the static functions here when the library says
// an error: with its code `rc` from the lower half, with a class `error` from the upper one.
#pragma once

#include "front/objects/real.h"
#include "front/requests/direct_entry.h"
#include "front/requests/engine.h"

namespace fermata::front {

struct Exchange;

class DirectMessage : public DirectEntry {
  public:
    // Words that must be zero for the direct tier. A call that counts a sent message, or takes a request
    // without a lock, checks `watch` too: that may not be done while several threads call, or while more than
    // the number of messages is noted.
    enum Asks { kNotCareful, kNotCarefulNorWatched };
    __attribute__((always_inline))
    DirectMessage(const char* function, Asks asks, Mode mode = kUnlocked) noexcept
        : DirectEntry(split::calling_thread()), entered_(enter(function, mode)) {
        if (!entered_) return;
        bool quiet =
            asks == kNotCareful ? split::is_zero(front.careful) : split::is_zero(careful_and_watch());
        if (__builtin_expect(quiet, 1)) return;
        give_up();
        entered_ = false;
    }
    explicit operator bool() const { return __builtin_expect(entered_, 1); }
    void give_up() const noexcept { DirectEntry::give_up(); }
    clock::Slot& slot() const { return *static_cast<clock::Slot*>(record()->slot); }

    // Counts a message to this peer; its world rank, -1 if it is not counted.
    __attribute__((always_inline)) int32_t count_sent_to(const CommObject* comm, int peer) const noexcept {
        if (__builtin_expect(static_cast<uint32_t>(peer) >= comm->counted_size, 0)) return -1;
        const int32_t world = comm->counted[peer].number();
        slot().sent_to(world);
        return world;
    }
    // Its next message, of a persistent request that is plain.
    template <What what>
    __attribute__((always_inline)) void take_again(RequestObject* r) const {
        if (what == What::recv) {
            r->posted = ++request_pool.posts;
            r->matched = nullptr;
        } else if (r->world >= 0) {
            slot().sent_to(r->world);
        }
        word_of(r) = head_word(what, State::active, kPersistent);
    }

    // Makes `r`, the pool's first, a request for this message.
    template <What what>
    __attribute__((always_inline)) void take(RequestObject* r, const void* buf, mpi::Count count,
                                             TypeObject* type, int peer, int tag, CommObject* comm) const {
        take_first(r);
        if (what == What::recv) r->posted = ++request_pool.posts;
        const int32_t world = what == What::send ? count_sent_to(comm, peer) : comm->world_of(peer);
        fill(r, what, buf, count, type, peer, world, tag, comm);
    }
    // A function of the library's own, in the lower half until up(): its code.
    template <typename... P, typename... A>
    __attribute__((always_inline)) int below(int (*function)(P...), A... args) const {
        cross_down();
        return function(args...);
    }
    __attribute__((always_inline)) void up() const { cross_up(); }
    static constexpr int kTurns = 64;
    // Waits for the end of a request of the library's, by a test of its own: 0, the class of its error, or -1
    // when a checkpoint is on its way first. `status` is of the library's own; `world` says whom it needs.
    using TestFunction = int (*)(mpi::RealRequest*, int*, void*);
    template <typename World>
    __attribute__((always_inline)) int wait(TestFunction test, mpi::RealRequest* request, void* status,
                                            World world) const {
        int done;
        int rc = below(test, request, &done, status);
        if (__builtin_expect(rc != 0, 0) || __builtin_expect(done == 0, 0)) {
            record()->waiting_for = world();
            rc = test_again(rc, &done, request, status);
        }
        up();
        return rc;
    }
    // The same for a receive with room for so many bytes that nobody else waits for: its end may be told
    // before the library frees it.
    template <typename World>
    __attribute__((always_inline)) int wait_for_receive(TestFunction test, mpi::RealRequest* request,
                                                        void* status, uint64_t room, World world) const {
        if (__builtin_expect(front.look == nullptr, 0) || __builtin_expect(front.watch != 0, 0))
            return wait(test, request, status, world);
        cross_down();
        record()->waiting_for = world();
        mpi::RealRequest* const spent = front.direct.spent_receive;
        if (*spent != mpi::RealRequest{}) end_spent_receive(record());
        int rc = front.look(*request, status, room, &front.attention);
        if (__builtin_expect(rc > 0, 1)) {
            *spent = *request;
            rc = 0;
        } else {
            // Otherwise the library tells its test what it says of the request.
            int done = 0;
            if (rc < 0) rc = test(request, &done, status);
            if (done == 0 || rc != 0) rc = wait_on(rc, request, status);
        }
        up();
        return rc;
    }
    // The library has ended the message of this request: counts it, and gives the request back. False: it is
    // a persistent one, whose handle stays.
    __attribute__((always_inline)) bool ended(RequestObject* r) const {
        if (r->what == What::recv) slot().received_from(r->world);
        if (__builtin_expect(!r->bare, 0) && !strip(record(), r)) return false;
        put_back(r);
        return true;
    }

    // From here on in the upper half, though still inside MPI: LOWER() may be used.
    __attribute__((always_inline)) void rise() const noexcept {
        asm volatile("" ::: "memory");
        record()->half = split::Half::upper;
    }
    __attribute__((always_inline)) int end() const noexcept { return leave(); }
    // The result of the call, on errors through the communicator's error handler.
    __attribute__((always_inline)) int end(int rc, const CommObject* comm) const noexcept {
        leave();
        return result(rc, comm);
    }

    // The library refused it.
    __attribute__((noinline, cold)) static int send_failed(split::ThreadRecord* record,
                                                           const CommObject* comm, int tag, int rc) noexcept;
    __attribute__((noinline, cold)) static int begin_failed(split::ThreadRecord* record, RequestObject* r,
                                                            int rc) noexcept;
    __attribute__((noinline, cold)) static int begin_refused(split::ThreadRecord* record, RequestObject* r,
                                                             int error) noexcept;
    __attribute__((noinline, cold)) static int receive_failed(split::ThreadRecord* record,
                                                              const CommObject* comm, int source,
                                                              int rc) noexcept;
    __attribute__((noinline, cold)) static int receive_ended(split::ThreadRecord* record,
                                                             const CommObject* comm, int source,
                                                             int error) noexcept;
    __attribute__((noinline, cold)) static int start_failed(split::ThreadRecord* record, RequestObject* r,
                                                            int rc) noexcept;
    __attribute__((noinline, cold)) static int probe_failed(split::ThreadRecord* record,
                                                            const CommObject* comm, int rc) noexcept;
    // MPI_Sendrecv, whose send was refused when its receive had been begun.
    __attribute__((noinline, cold)) static int exchange_refused(split::ThreadRecord* record,
                                                                const Exchange& x, mpi::RealRequest receive,
                                                                int rc) noexcept;
    // MPI_Sendrecv, whose receive (`started[0]`) and send the library has begun: a checkpoint is on its way,
    // or one of them failed. 0 in `started` is what has ended, the receive with *status.
    __attribute__((noinline, cold)) static int exchange_goes_on(split::ThreadRecord* record,
                                                                const Exchange& x,
                                                                const mpi::RealRequest* started,
                                                                mpi::Status* status) noexcept;
    // MPI_Recv, whose receive the library has begun: a checkpoint is on its way.
    __attribute__((noinline, cold)) static int receive_goes_on(split::ThreadRecord* record, void* buf,
                                                               mpi::Count count, mpi::Datatype type,
                                                               int source, int tag, CommObject* comm,
                                                               mpi::RealRequest open,
                                                               mpi::Status* status) noexcept;
    // The library has ended this one with an error: left complete for a Call. The entry goes on.
    __attribute__((noinline, cold)) static void test_failed(split::ThreadRecord* record, RequestObject* r,
                                                            const mpi::Status& status, int rc) noexcept;
    __attribute__((noinline, cold)) static void wait_failed(split::ThreadRecord* record, RequestObject* r,
                                                            const mpi::Status& status, int error) noexcept;

    // Takes over an entry that goes on in another function.
    explicit DirectMessage(split::ThreadRecord* record) noexcept : DirectEntry(record), entered_(true) {}

  private:
    // The first tests here: on its way through wait_on() the end of a message takes 2 % of a ping-pong longer
    // (MPICH; on Open MPI nothing that can be seen). Not more of them than that one makes without giving way
    // to others. In the lower half.
    __attribute__((always_inline)) static int test_again(int rc, int* done, mpi::RealRequest* request,
                                                         void* status) noexcept {
        for (int turns = kTurns; rc == 0 && *done == 0; rc = front.direct.Test(request, done, status)) {
            if (__builtin_expect(turns-- == 0, 0) || __builtin_expect(front.attention != 0, 0)) break;
        }
        if (__builtin_expect(rc != 0, 0) || __builtin_expect(*done == 0, 0))
            rc = wait_on(rc, request, status);
        return rc;
    }
    __attribute__((noinline)) static void end_spent_receive(split::ThreadRecord* record) noexcept;
    __attribute__((noinline)) static int wait_on(int rc, mpi::RealRequest* request, void* status) noexcept;
    // False: it is persistent, and inactive now.
    __attribute__((noinline)) static bool strip(split::ThreadRecord* record, RequestObject* r) noexcept;
    static const volatile uint64_t& careful_and_watch() noexcept {
        static_assert(offsetof(Front, watch) == offsetof(Front, careful) + sizeof(uint32_t));
        return reinterpret_cast<const volatile uint64_t&>(front.careful);
    }

    bool entered_;
};

}  // namespace fermata::front
