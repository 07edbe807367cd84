// An entry as long as all goes well, in the fewest instructions: the base of DirectCollective and
// DirectMessage.
//
// The thread says "in the lower half" from the first store to the last one, which say `in_mpi` as well, so
// what is between them may not use LOWER(), nor anything that waits, stops or fails: who needs that leaves
// and begins anew as a Call. The ways out before the call never come back, so that the arguments stay in
// registers.
#pragma once

#include "fermata_table.h"
#include "front/core/call.h"
#include "front/objects/comm.h"

namespace fermata::front {

class DirectEntry {
  public:
    DirectEntry(const DirectEntry&) = delete;
    DirectEntry& operator=(const DirectEntry&) = delete;

    split::ThreadRecord* record() const { return record_; }

    // A function of the library's own: its result made a class.
    template <typename... P, typename... A>
    __attribute__((always_inline)) int direct(int (*function)(P...), A... args) const {
        cross_down();
        int rc = function(args...);
        if (__builtin_expect(rc != 0, 0)) rc = class_of(rc);
        cross_up();
        return rc;
    }
    // A function of the table.
    template <typename... P, typename... A>
    __attribute__((always_inline)) int lower(int (*function)(P...), A... args) const {
        cross_down();
        int rc = function(args...);
        cross_up();
        return rc;
    }

  protected:
    explicit DirectEntry(split::ThreadRecord* record) noexcept : record_(record) {}

    // False: it has to be a Call. Within another entry, in a callback of the library's, or the thread's
    // first.
    __attribute__((always_inline)) bool enter(const char* function, Mode mode) const noexcept {
        if (__builtin_expect(record_ == nullptr || !split::is_zero(split::place_of(record_)), 0))
            return false;
        split::place_of(record_) = split::in_library(mode);
        // Pairs with the agent's membarrier: in_mpi before the look at what is pending. And what a restart
        // changes is read after it.
        asm volatile("" ::: "memory");
        record_->waiting_in = function;
        return true;
    }
    // A wish to stop that came meanwhile is seen by the Call that follows.
    __attribute__((always_inline)) void give_up() const noexcept {
        split::place_of(record_) = split::kInProgram;
    }
    __attribute__((always_inline)) int leave() const noexcept {
        asm volatile("" ::: "memory");
        split::place_of(record_) = split::kInProgram;
        asm volatile("" ::: "memory");
        return __builtin_expect(split::is_zero(record_->stop), 1) ? 0 : stop_at_exit();
    }

    // The result of a call that has ended, on errors through the communicator's error handler.
    __attribute__((always_inline)) int result(int rc, const CommObject* comm) const noexcept {
        return __builtin_expect(rc == 0, 1) ? 0 : fail(record_, comm, rc);
    }

    __attribute__((always_inline)) void cross_down() const {
        asm volatile("" ::: "memory");
        if (__builtin_expect(!split::is_zero(record_->fs_below), 0)) split::write_fs(record_->fs_below);
    }
    __attribute__((always_inline)) void cross_up() const {
        // Looked at anew: it may have become necessary meanwhile.
        if (__builtin_expect(!split::is_zero(record_->fs_below), 0)) split::write_fs(record_->upper_fs);
        asm volatile("" ::: "memory");
    }
    // In the lower half.
    __attribute__((noinline, cold)) static int class_of(int rc) noexcept;

  private:
    __attribute__((noinline, cold)) static int fail(const split::ThreadRecord* record, const CommObject* comm,
                                                    int rc) noexcept;

    split::ThreadRecord* record_;
};

// Has the library the statuses, MPI_STATUS_IGNORE and all values with a meaning of their own of this family?
// To be asked within an entry: a restart changes it.
__attribute__((always_inline)) inline bool library_is_of(mpi::Family family) noexcept {
    return __builtin_expect(front.direct.family == family, 1);
}

// May the library's own function have these arguments as they are? Arguments with a meaning of their own may
// not: a special rank, a count beyond int, MPI_IN_PLACE, a null handle.
template <typename... Number>
__attribute__((always_inline)) inline bool are_plain_numbers(Number... numbers) noexcept {
    if constexpr (((sizeof(Number) == sizeof(int)) && ...))
        return __builtin_expect((numbers | ... | 0) >= 0, 1);
    uint64_t bits = (static_cast<uint64_t>(int64_t{numbers}) | ... | 0);
    return __builtin_expect(bits >> 31 == 0, 1);
}
__attribute__((always_inline)) inline bool is_plain(const void* buffer) noexcept {
    return buffer != mpi::FM_IN_PLACE;
}
__attribute__((always_inline)) inline bool is_plain(mpi::RealDatatype type) noexcept {
    return static_cast<uint64_t>(type) != 0;
}
__attribute__((always_inline)) inline bool is_plain(mpi::RealOp op) noexcept {
    return static_cast<uint64_t>(op) != 0;
}
template <typename... A>
__attribute__((always_inline)) inline bool all_plain(A... arguments) noexcept {
    return (__builtin_expect(is_plain(arguments), 1) && ...);
}

}  // namespace fermata::front
