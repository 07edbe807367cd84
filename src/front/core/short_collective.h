// A blocking collective as long as all goes well: what ShortCall is to Call.
//
//     ShortCall call("MPI_Bcast");
//     CommObject* c = in_short(call, comm);
//     if (c == nullptr) return bcast_from_start(...);  // with Call and CollectiveScope
//     ShortCollective scope(call.record(), *c);        // may park here: read real handles after
#pragma once

#include "front/core/collective.h"
#include "front/objects/real.h"

namespace fermata::front {

// The communicator; null, and the call given up, when only a Call and a CollectiveScope will do: no such
// communicator, none with a clock, or a protocol that wants a barrier first.
__attribute__((always_inline)) inline CommObject* in_short(ShortCall& call, mpi::Comm comm) noexcept {
    if (!call) return nullptr;
    CommObject* c = find(comm);
    if (__builtin_expect(c != nullptr && c->clock != nullptr, 1) &&
        __builtin_expect(!front.clock->policy().barrier_first, 1))
        return c;
    call.give_up();
    return nullptr;
}

class ShortCollective {
  public:
    __attribute__((always_inline)) ShortCollective(split::ThreadRecord* record, CommObject& on) noexcept
        : clock_(*static_cast<clock::Comm*>(on.clock)), slot_(slot_of(record)), record_(record) {
        front.clock->enter(clock_, slot_);  // sets kCareful when it has to wait
        record->user[kMode] = kCaptive;
    }
    __attribute__((always_inline)) ~ShortCollective() noexcept {
        record_->user[kMode] = kFast;
        if (front.clock->leave(clock_, slot_)) record_->user[kMode] = kFast;
    }
    ShortCollective(const ShortCollective&) = delete;
    ShortCollective& operator=(const ShortCollective&) = delete;

  private:
    clock::Comm& clock_;
    clock::Slot& slot_;
    split::ThreadRecord* record_;
};

}  // namespace fermata::front
