// A slot holds what its thread tells the collective clock.
#pragma once

#include "clock/clock.h"
#include "front/core/front.h"

namespace fermata::front {

inline clock::RankClock& rank_clock() noexcept { return *front.clock; }
// The thread's slot: that of its record's index, noted when it was attached. The agent never was.
inline clock::Slot& slot_of(split::ThreadRecord* record) noexcept {
    auto* slot = static_cast<clock::Slot*>(record->slot);
    return __builtin_expect(slot != nullptr, 1) ? *slot : front.clock->slot(record->index);
}

}  // namespace fermata::front
