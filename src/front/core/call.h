// Call is one MPI call of the application: an entry fm_X begins with `Call call("MPI_X");`. The entries that
// programs call most begin with a DirectMessage or a DirectCollective (front/requests) and come to a Call
// only where those give up.
//
// The constructor gives the thread its record (attaching it at its first MPI call), says "inside MPI" so that
// the stop signal captures nothing here, and stops at once when the process is frozen. The destructor undoes
// it and stops if asked meanwhile. Code between the two is captured only at explicit stop points
// (Call::stop_point): after one, everything cached from the lower half (real handles, bridge, table) is stale
// and must be read again.
#pragma once

#include <cstdint>

#include "fermata_types.h"
#include "front/core/front.h"
#include "split/gate.h"

namespace fermata::front {

// ThreadRecord::mode: how far others (threads that pull, the agent) may work on messages and requests
// while this thread is inside MPI.
enum Mode : uint16_t {
    kUnlocked =
        0,  // in the direct or translated tier: posts and tests without the library's lock, others keep off
    kCareful = 1,  // in the careful tier: every call into the lower half is made under the library's lock
    kCaptive = 2,  // in a lower-half call that touches neither requests nor matching: a collective
    kSending = 3,  // likewise: a blocking send
};
// ThreadRecord::waiting_for: no peer of one rank, but any of many requests.
inline constexpr int32_t kAnyOfMany = -2;
inline bool captive(uint32_t mode) noexcept { return mode == kCaptive || mode == kSending; }

// Around application code that the lower half has called (a reduction).
class LowerFramesBelow {
  public:
    explicit LowerFramesBelow(split::ThreadRecord* record) noexcept : record_(record) {
        record->callbacks = record->callbacks + 1;
    }
    ~LowerFramesBelow() { record_->callbacks = record_->callbacks - 1; }
    LowerFramesBelow(const LowerFramesBelow&) = delete;
    LowerFramesBelow& operator=(const LowerFramesBelow&) = delete;

  private:
    split::ThreadRecord* record_;
};

// Offers the thread to be stopped at the end of a call, when it was asked to while inside. Returns 0.
__attribute__((cold, noinline)) int stop_at_exit() noexcept;

__attribute__((always_inline)) inline void leave_mpi(split::ThreadRecord* record) noexcept {
    asm volatile("" ::: "memory");
    uint32_t depth = record->in_mpi - 1;
    record->in_mpi = depth;
    asm volatile("" ::: "memory");
    if (__builtin_expect(record->stop != 0, 0) && depth == 0) stop_at_exit();
}

class Call {
  public:
    // Goes on with a direct entry as a Call, without an instant outside of MPI.
    Call(const char* function, split::ThreadRecord* record) : record_(record), function_(function) {}
    __attribute__((always_inline)) explicit Call(const char* function) : function_(function) {
        record_ = split::calling_thread();
        if (__builtin_expect(record_ == nullptr, 0)) record_ = attach();
        record_->in_mpi = record_->in_mpi + 1;
        asm volatile(
            "" ::
                : "memory");  // pairs with the agent's membarrier: in_mpi before the look at `careful`
        record_->waiting_in = function;
        if (__builtin_expect((front.careful & kFrozen) != 0, 0)) enter_frozen();
    }
    __attribute__((always_inline)) ~Call() {
        if (__builtin_expect(record_ != nullptr, 1)) leave_mpi(record_);
    }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

    // Ends the call: success as it is, errors through the error handler of the object (which may not return).
    __attribute__((always_inline)) int finish(mpi::Comm comm, int rc) {
        return __builtin_expect(rc == 0, 1) ? 0 : fail(comm, rc);
    }
    int finish(mpi::Win win, int rc) { return __builtin_expect(rc == 0, 1) ? 0 : fail(win, rc); }
    int finish(mpi::File file, int rc) { return __builtin_expect(rc == 0, 1) ? 0 : fail(file, rc); }
    int finish(mpi::Session session, int rc) { return __builtin_expect(rc == 0, 1) ? 0 : fail(session, rc); }
    // For functions without an object: MPI-4 raises on MPI_COMM_SELF.
    int finish(int rc) { return __builtin_expect(rc == 0, 1) ? 0 : fail_default(rc); }

    // Offers this thread to be stopped; no lock may be held. Returns after resume or restart, at once when
    // nothing is asked. False: nothing happened (all that was cached is still good).
    bool stop_point() noexcept;

    split::ThreadRecord* record() const { return record_; }
    const char* function() const { return function_; }

  private:
    __attribute__((cold)) static split::ThreadRecord* attach() noexcept;
    void enter_frozen() noexcept;
    __attribute__((cold)) int fail(mpi::Comm comm, int rc) noexcept;
    __attribute__((cold)) int fail(mpi::Win win, int rc) noexcept;
    __attribute__((cold)) int fail(mpi::File file, int rc) noexcept;
    __attribute__((cold)) int fail(mpi::Session session, int rc) noexcept;
    __attribute__((cold)) int fail_default(int rc) noexcept;

    split::ThreadRecord* record_;
    const char* function_;
};

// A failed Call ends in one of these (objects/errhandler.cpp, objects/session.cpp): they run the virtual
// error handler (application code may run, the caller is already out of MPI) and return the code the
// application gets.
int raise_on(mpi::Comm comm, int rc, const char* function) noexcept;
int raise_on(mpi::Win win, int rc, const char* function) noexcept;
int raise_on(mpi::File file, int rc, const char* function) noexcept;
int raise_on(mpi::Session session, int rc, const char* function) noexcept;
int raise_default(int rc, const char* function) noexcept;

// The threads that have called MPI, by record index; null where there is none.
extern split::ThreadRecord* records[split::kMaxThreads];
extern volatile int32_t record_end;  // one past the highest index in use

// Call::stop_point for code that only has the record.
bool stop_here(split::ThreadRecord* record) noexcept;

}  // namespace fermata::front
