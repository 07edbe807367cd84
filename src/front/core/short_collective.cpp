#include "front/core/short_collective.h"

namespace fermata::front {

// The first half of the other constructor has counted the call and says "in the library".
ShortCollective::ShortCollective(Held, CommObject* comm) noexcept
    : ShortEntry(split::this_thread()), comm_(comm), clock_(comm->short_clock), way_(Way::free) {
    if (clock_ == &no_short_clock) {
        give_up();
        way_ = Way::from_start;
        return;
    }
    record()->mode = kFast;  // who waits says kCareful
    record()->half = split::Half::upper;
    front.clock->wait_at_gate(*clock_, slot_of(record()), clock_->entered);
    record()->mode = kCaptive;
    asm volatile("" ::: "memory");
    record()->half = split::Half::lower;
}

int ShortCollective::failed(split::ThreadRecord* record, clock::Comm& clock, int rc) noexcept {
    ShortCollective call(record, clock);
    rc = class_of(rc);
    call.cross_up();
    return call.end(rc);
}

int ShortCollective::leave_pending(split::ThreadRecord* record, clock::Comm& clock) noexcept {
    record->mode = kFast;  // who waits says kCareful
    record->half = split::Half::upper;
    front.clock->leave_pending(clock, slot_of(record));
    record->mode = kFast;
    leave_mpi(record);
    return 0;
}

}  // namespace fermata::front
