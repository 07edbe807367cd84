#include "front/core/short_collective.h"

namespace fermata::front {

// The first half of the other constructor has counted the call and says "in the library".
ShortCollective::ShortCollective(Held, mpi::Comm comm) noexcept
    : ShortEntry(split::this_thread()), comm_(find(comm)), way_(Way::free) {
    record()->user[kMode] = kFast;  // the gate sets kCareful when it has to wait
    record()->half = split::Half::upper;
    front.clock->wait_at_gate(clock(), slot_of(record()), clock().entered);
    record()->user[kMode] = kCaptive;
    asm volatile("" ::: "memory");
    record()->half = split::Half::lower;
}

void ShortCollective::leave_pending(split::ThreadRecord* record, clock::Comm& clock) noexcept {
    record->half = split::Half::upper;
    front.clock->leave_pending(clock, slot_of(record));
    record->user[kMode] = kFast;
}

}  // namespace fermata::front
