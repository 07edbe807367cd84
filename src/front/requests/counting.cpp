// Facts about messages that a checkpoint has to know beside their number.
#include "front/requests/engine.h"

namespace fermata::front {

void count_watched(clock::Slot& slot, int32_t world, const CommObject* comm, int tag,
                   RequestObject* r) noexcept {
    if (front.threads != 0) slot.labelled(world, label_of(comm, tag));
    if ((front.watch & kChannels) == 0) return;
    uint64_t place = channel_count(world, comm, tag);
    if (r != nullptr && r->what == What::send && r->mode < kSynchronous) r->place = place;
}

namespace {
bool uncount(clock::Slot& slot, int32_t world) noexcept {
    if (static_cast<uint32_t>(world) >= static_cast<uint32_t>(front.world_size)) return false;
    __atomic_fetch_sub(&slot.sent[world], 1, __ATOMIC_RELAXED);
    return (front.watch & kChannels) != 0;
}
}  // namespace

void uncount_sent(clock::Slot& slot, int32_t world, const CommObject* comm, int tag) noexcept {
    if (uncount(slot, world)) channel_uncount(world, comm, tag);
}

void uncount_sent(clock::Slot& slot, const RequestObject* r) noexcept {
    if (!uncount(slot, r->world)) return;
    if (r->what == What::send && r->mode != kBuffered)
        channel_uncount(r);
    else
        channel_uncount(r->world, r->comm, r->tag);
}

}  // namespace fermata::front
