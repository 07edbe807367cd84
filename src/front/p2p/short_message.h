// A point-to-point entry, or any other of one request, as long as all goes well: on the fast path.
//
//     ShortMessage call("MPI_Send", ShortMessage::kSlowAndWatch);
//     if (!call) return send_from_start(...);                     // with Call
//     if (<arguments will not do>) return call.give_up(), send_from_start(...);
//     rc = call.direct(front.direct.Send, ...);
//     return call.end(rc, comm);
#pragma once

#include "front/core/short_entry.h"
#include "front/objects/real.h"
#include "front/p2p/engine.h"

namespace fermata::front {

class ShortMessage : public ShortEntry {
  public:
    // What has to be zero. Who counts a sent message, or takes a request without a lock, asks for `watch`
    // too: neither is done so for several threads at once, or while more than the number of messages is
    // noted.
    enum Asks { kSlow, kSlowAndWatch };
    __attribute__((always_inline)) ShortMessage(const char* function, Asks asks) noexcept
        : ShortEntry(split::calling_thread()), entered_(enter(function, kFast)) {
        if (!entered_) return;
        bool quiet = asks == kSlow ? split::is_zero(front.slow) : split::is_zero(slow_and_watch());
        if (__builtin_expect(quiet, 1)) return;
        give_up();
        entered_ = false;
    }
    explicit operator bool() const { return __builtin_expect(entered_, 1); }
    void give_up() const noexcept { ShortEntry::give_up(); }
    clock::Slot& slot() const { return *static_cast<clock::Slot*>(record()->slot); }

    // Counts a message to this peer; its world rank, -1 if it is not counted.
    __attribute__((always_inline)) int32_t count_sent_to(const CommObject* comm, int peer) const noexcept {
        if (__builtin_expect(static_cast<uint32_t>(peer) >= comm->counted_size, 0)) return -1;
        const int32_t world = comm->counted[peer];
        slot().sent_to(world);
        return world;
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

  private:
    static const volatile uint64_t& slow_and_watch() noexcept {
        static_assert(offsetof(Front, watch) == offsetof(Front, slow) + sizeof(uint32_t));
        return reinterpret_cast<const volatile uint64_t&>(front.slow);
    }

    bool entered_;
};

}  // namespace fermata::front
