// A point-to-point entry as long as all goes well: on the fast path, with arguments that the library takes as
// they are.
//
//     ShortMessage call("MPI_Send", ShortMessage::kPost);
//     if (!call) return send_from_start(...);                     // with Call
//     if (<arguments will not do>) return call.give_up(), send_from_start(...);
//     rc = call.direct(front.table->direct.Send, ...);
//     return call.end(rc, comm);
#pragma once

#include "front/core/short_entry.h"
#include "front/objects/real.h"
#include "front/p2p/engine.h"

namespace fermata::front {

class ShortMessage : public ShortEntry {
  public:
    // What begins an operation counts a message or takes a request: neither is done here for several threads
    // at once, or while more than the number of messages is noted.
    enum What { kPost, kWait };
    __attribute__((always_inline)) ShortMessage(const char* function, What what) noexcept
        : ShortEntry(split::calling_thread()), entered_(enter(function)) {
        if (!entered_) return;
        bool quiet = what == kPost ? split::is_zero(slow_and_watch()) : split::is_zero(front.slow);
        if (__builtin_expect(quiet, 1)) return;
        give_up();
        entered_ = false;
    }
    explicit operator bool() const { return __builtin_expect(entered_, 1); }
    void give_up() const noexcept { ShortEntry::give_up(); }
    clock::Slot& slot() const { return *static_cast<clock::Slot*>(record()->slot); }

    // From here on in the upper half, though still inside MPI: LOWER() may be used.
    __attribute__((always_inline)) void rise() const noexcept {
        asm volatile("" ::: "memory");
        record()->half = split::Half::upper;
    }
    __attribute__((always_inline)) int end() const noexcept {
        leave();
        return 0;
    }
    // The result of the call, on errors through the communicator's error handler.
    __attribute__((always_inline)) int end(int rc, const CommObject* comm) const noexcept {
        leave();
        return __builtin_expect(rc == 0, 1) ? 0 : fail(record(), comm, rc);
    }

  private:
    static const volatile uint64_t& slow_and_watch() noexcept {
        static_assert(offsetof(Front, watch) == offsetof(Front, slow) + sizeof(uint32_t));
        return reinterpret_cast<const volatile uint64_t&>(front.slow);
    }
    __attribute__((noinline, cold)) static int fail(const split::ThreadRecord* record, const CommObject* comm,
                                                    int rc) noexcept {
        return raise_on(static_cast<mpi::Comm>(comm->handle), rc, record->waiting_in);
    }

    bool entered_;
};

}  // namespace fermata::front
