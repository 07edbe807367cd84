// The lock of the careful tier: while a checkpoint is pending, every call into the lower half is made under
// it.
//
// A thread says kCareful for as long as it keeps to that; other threads and the agent may then work on
// messages and requests whenever they hold the lock (requests/engine.h tells why).
#pragma once

#include "front/core/call.h"
#include "front/core/heap.h"

namespace fermata::front {

extern SpinLock library_lock;

inline bool careful_tier() noexcept { return __builtin_expect(front.careful != 0, 0); }
inline bool pending_checkpoint() noexcept { return (front.careful & (kPending | kFrozen)) != 0; }

// This thread is in the careful tier for the length of the scope.
class Careful {
  public:
    explicit Careful(split::ThreadRecord* record) noexcept : record_(record), before_(record->mode) {
        record->mode = kCareful;
    }
    ~Careful() { record_->mode = before_; }
    Careful(const Careful&) = delete;
    Careful& operator=(const Careful&) = delete;

  private:
    split::ThreadRecord* record_;
    uint32_t before_;
};

// Calls into the lower half that are neither posting nor matching (packing, cancelling): under the lock in
// the careful tier, plainly in the translated one.
class LockIfCareful {
  public:
    explicit LockIfCareful(split::ThreadRecord* record) noexcept FERMATA_LOCKS_UNSEEN {
        if (!careful_tier()) return;
        record_ = record;
        before_ = record->mode;
        record->mode = kCareful;
        library_lock.lock();
    }
    ~LockIfCareful() FERMATA_LOCKS_UNSEEN {
        if (record_ == nullptr) return;
        library_lock.unlock();
        record_->mode = before_;
    }
    LockIfCareful(const LockIfCareful&) = delete;
    LockIfCareful& operator=(const LockIfCareful&) = delete;

  private:
    split::ThreadRecord* record_ = nullptr;
    uint32_t before_ = 0;
};

}  // namespace fermata::front
