// A blocking collective as long as all goes well.
//
//     ShortCollective call("MPI_Bcast", comm);
//     if (call.is_from_start()) return bcast_from_start(...);     // with Call and CollectiveScope
//     if (call.is_held()) return bcast_held(...);                 // as ShortCollective(kHeld, comm)
//     rc = call.direct(front.table->direct.Bcast, ...);           // the library's own function
//     rc = call.lower(front.table->Bcast, ...);                   // or the binding's: any arguments
//     return call.end(rc);
//
// It asks once whether a checkpoint is on its way: Front::slow has nothing to say to a collective that the
// clock does not know. Where it has to wait it is in the upper half again.
#pragma once

#include "front/core/collective.h"
#include "front/core/short_entry.h"
#include "front/objects/real.h"

namespace fermata::front {

class ShortCollective : public ShortEntry {
  public:
    __attribute__((always_inline)) ShortCollective(const char* function, mpi::Comm comm) noexcept
        : ShortEntry(split::calling_thread()) {
        if (!enter(function)) return;
        comm_ = find(comm);
        if (__builtin_expect(comm_ != nullptr && comm_->short_clock != nullptr, 1)) {
            clock::Comm& on = clock();
            clock::RankClock::mark_entered(on, record()->index);
            record()->user[kMode] = kCaptive;
            way_ = is_pending(on) ? Way::held : Way::free;
            return;
        }
        give_up();
    }
    // One that is_held(): goes on from there, through the gate. After it real handles have to be read again.
    enum Held { kHeld };
    ShortCollective(Held, mpi::Comm comm) noexcept;

    // No such communicator, one without a clock, a protocol that wants a barrier first, the thread's first
    // call, or one inside another.
    bool is_from_start() const { return __builtin_expect(way_ == Way::from_start, 0); }
    // A checkpoint is on its way.
    bool is_held() const { return __builtin_expect(way_ == Way::held, 0); }
    mpi::RealComm comm() const { return static_cast<mpi::RealComm>(comm_->real); }

    // The result of the call, on errors through the communicator's error handler.
    __attribute__((always_inline)) int end(int rc) const noexcept {
        clock::Comm& on = clock();
        record()->user[kMode] = kFast;
        clock::RankClock::mark_left(on);
        if (is_pending(on)) leave_pending(record(), on);
        leave();
        return result(rc, comm_);
    }

  private:
    enum class Way { from_start, held, free };

    clock::Comm& clock() const { return *static_cast<clock::Comm*>(comm_->short_clock); }
    __attribute__((always_inline)) static bool is_pending(const clock::Comm& on) {
        return __builtin_expect(!split::is_zero(*reinterpret_cast<const volatile uint32_t*>(on.pending)), 0);
    }
    __attribute__((noinline, cold)) static void leave_pending(split::ThreadRecord* record,
                                                              clock::Comm& clock) noexcept;

    CommObject* comm_;
    Way way_ = Way::from_start;
};

}  // namespace fermata::front
