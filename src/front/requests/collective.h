// CollectiveScope tells the collective clock of one blocking collective on a communicator.
//
//     CollectiveScope scope(call, comm);       // may park here while a checkpoint converges,
//     rc = LOWER(Bcast)(..., to_real(comm));   // so real handles are read after it
//     scope.end();
//
// Creation of communicators uses the scope too: the new communicator is registered while the scope is still
// open. The usual path is a few plain stores and one predicted branch at each end.
#pragma once

#include "clock/clock.h"
#include "front/core/call.h"
#include "front/core/slot.h"

namespace fermata::front {

struct CommObject;

// Makes the rank's clock; from the library's constructor, once the lower half is known.
void start_clock() noexcept;

class CollectiveScope {
  public:
    CollectiveScope(Call& call, clock::Comm* on) noexcept : clock_(on), record_(call.record()), call_(&call) {
        begin();
    }
    CollectiveScope(Call& call, CommObject& comm) noexcept;
    // An unknown handle makes an empty scope: the real library reports the error.
    CollectiveScope(Call& call, mpi::Comm comm) noexcept;
    ~CollectiveScope() noexcept {
        if (clock_ != nullptr) end();
    }
    CollectiveScope(const CollectiveScope&) = delete;
    CollectiveScope& operator=(const CollectiveScope&) = delete;
    // Ends the scope early (before an error handler runs, and before the clock is unregistered).
    void end() noexcept {
        if (clock_ == nullptr) return;
        record_->mode = kUnlocked;
        if (front.clock->leave(*clock_, slot_of(record_))) record_->mode = kUnlocked;
        clock_ = nullptr;
    }

  private:
    void begin() noexcept {
        if (clock_ == nullptr) return;
        clock::Slot& slot = slot_of(record_);
        if (__builtin_expect(front.clock->policy().barrier_first, 0)) barrier_first(slot);
        front.clock->enter(*clock_, slot);  // sets kCareful when it has to wait
        record_->mode = kCaptive;
    }
    void barrier_first(clock::Slot& slot) noexcept;

    clock::Comm* clock_;
    split::ThreadRecord* record_;
    Call* call_;
    CommObject* comm_ = nullptr;
};

// Epochs that this process has open on its windows: locks, starts, posts. Others may wait for their ends.
extern volatile int32_t epochs_open;
inline void epochs_add(int32_t count) noexcept {
    __atomic_fetch_add(const_cast<int32_t*>(&epochs_open), count, __ATOMIC_RELAXED);
}

// A one-sided call: the library may hold it up until another rank gives a lock back.
//
//     AccessScope scope(call);        // a lock: may park here while a checkpoint converges
//     AccessScope scope(call, true);  // all others
class AccessScope {
  public:
    __attribute__((always_inline)) explicit AccessScope(Call& call, bool within = false) noexcept
        : record_(call.record()) {
        front.clock->enter_access(slot_of(record_),
                                  within || epochs_open != 0);  // sets kCareful when it waits
        record_->mode = kCaptive;
    }
    __attribute__((always_inline)) ~AccessScope() noexcept {
        record_->mode = kUnlocked;
        front.clock->leave_access(slot_of(record_));
        if (__builtin_expect(record_->mode != kUnlocked, 0)) record_->mode = kUnlocked;
    }
    AccessScope(const AccessScope&) = delete;
    AccessScope& operator=(const AccessScope&) = delete;

  private:
    split::ThreadRecord* record_;
};

}  // namespace fermata::front
