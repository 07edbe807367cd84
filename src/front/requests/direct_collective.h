// A blocking collective as long as all goes well.
//
//     DirectCollective call("MPI_Bcast", find(comm));
//     if (call.has_to_be_call()) return bcast_as_call(...);     // with Call and CollectiveScope
//     if (call.is_held()) return fm_Bcast_held(...);              // as DirectCollective(kHeld, find(comm))
//     return call.run(as_it_is, front.direct.Bcast, ...);         // the library's own function
//     return call.end(call.lower(front.table->Bcast, ...));       // or the binding's: any arguments
//
// It asks once whether a checkpoint is on its way: Front::careful has nothing to say to a collective that the
// clock does not know. Where it has to wait it is in the upper half again.
#pragma once

#include "front/objects/real.h"
#include "front/requests/collective.h"
#include "front/requests/direct_entry.h"

namespace fermata::front {

inline int as_it_is(int rc) { return rc; }

class DirectCollective : public DirectEntry {
  public:
    __attribute__((always_inline)) DirectCollective(const char* function, CommObject* comm) noexcept
        : DirectCollective(function, comm, [] { return false; }) {}
    // `refused`: says of the arguments, once a restart cannot change that, that the library may not have them
    // as they are.
    template <typename Refused>
    __attribute__((always_inline))
    DirectCollective(const char* function, CommObject* comm, Refused refused) noexcept
        : DirectEntry(split::calling_thread()), comm_(comm) {
        if (!enter(function, kCaptive)) return;
        if (__builtin_expect(comm_ != nullptr, 1) && !refused()) {
            clock_ = comm_->direct_clock;
            clock::RankClock::mark_entered(*clock_, record()->index);
            way_ = is_pending(*clock_) ? Way::held : Way::free;
            return;
        }
        give_up();
    }
    // One that is_held(): goes on from there, through the gate, or has_to_be_call() after all. After it real
    // handles have to be read again.
    enum Held { kHeld };
    DirectCollective(Held, CommObject* comm) noexcept;

    // No such communicator, arguments that are refused, the thread's first call, or one inside another.
    bool has_to_be_call() const { return __builtin_expect(way_ == Way::as_call, 0); }
    // A checkpoint is on its way, or the communicator has no clock for this.
    bool is_held() const { return __builtin_expect(way_ == Way::held, 0); }
    mpi::RealComm comm() const { return static_cast<mpi::RealComm>(comm_->real); }

    // The result of the call, on errors through the communicator's error handler.
    __attribute__((always_inline)) int end(int rc) const noexcept {
        const auto* comm = static_cast<const CommObject*>(clock_->owner);
        end();
        return result(rc, comm);
    }
    // A function of the library's own, and the end, whose error class `outward` makes the result. Rare cases
    // do not come back here: the common way is one piece.
    template <typename Outward, typename... P, typename... A>
    __attribute__((always_inline)) int run(Outward outward, int (*function)(P...), A... args) const {
        cross_down();
        if (int rc = function(args...); __builtin_expect(rc != 0, 0))
            return outward(failed(record(), *clock_, rc));
        cross_up();
        return end();
    }

  private:
    enum class Way { as_call, held, free };

    DirectCollective(split::ThreadRecord* record, clock::Comm& clock) noexcept
        : DirectEntry(record), clock_(&clock), way_(Way::free) {}
    __attribute__((always_inline)) int end() const noexcept {
        clock::RankClock::mark_left(*clock_);
        if (is_pending(*clock_)) return leave_pending(record(), *clock_);
        return leave();
    }
    __attribute__((always_inline)) static bool is_pending(const clock::Comm& on) {
        return __builtin_expect(!split::is_zero(reinterpret_cast<const volatile uint32_t&>(on.pending)), 0);
    }
    // In the lower half: the end of a call that failed, with the library's code.
    __attribute__((noinline, cold)) static int failed(split::ThreadRecord* record, clock::Comm& clock,
                                                      int rc) noexcept;
    __attribute__((noinline, cold)) static int leave_pending(split::ThreadRecord* record,
                                                             clock::Comm& clock) noexcept;

    CommObject* comm_ = nullptr;  // until the call; its end has only the clock
    clock::Comm* clock_ = nullptr;
    Way way_ = Way::as_call;
};

}  // namespace fermata::front
