#include "front/requests/direct_collective.h"

namespace fermata::front {

// The first half of the other constructor has counted the call and says "in the library".
DirectCollective::DirectCollective(Held, CommObject* comm) noexcept
    : DirectEntry(split::this_thread()), comm_(comm), clock_(comm->direct_clock), way_(Way::free) {
    if (clock_ == &no_direct_clock) {
        give_up();
        way_ = Way::as_call;
        return;
    }
    record()->mode = kUnlocked;  // who waits says kCareful
    record()->half = split::Half::upper;
    front.clock->wait_at_gate(*clock_, slot_of(record()), clock_->entered);
    record()->mode = kCaptive;
    asm volatile("" ::: "memory");
    record()->half = split::Half::lower;
}

int DirectCollective::failed(split::ThreadRecord* record, clock::Comm& clock, int rc) noexcept {
    DirectCollective call(record, clock);
    rc = class_of(rc);
    call.cross_up();
    return call.end(rc);
}

int DirectCollective::leave_pending(split::ThreadRecord* record, clock::Comm& clock) noexcept {
    record->mode = kUnlocked;  // who waits says kCareful
    record->half = split::Half::upper;
    front.clock->leave_pending(clock, slot_of(record));
    record->mode = kUnlocked;
    leave_mpi(record);
    return 0;
}

}  // namespace fermata::front
