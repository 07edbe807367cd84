// Messages of the collective clock between agent, node daemon and root: docs/formats/clock-messages.md.
// A reader and a writer of the same grammar; the reader trusts nothing.
#pragma once

#include <cstddef>
#include <cstdint>

#include "clock/types.h"

namespace fermata::clock {

// No message is longer; larger tables travel in parts. Fits any frame of the wire.
inline constexpr size_t kMaxMessage = 32 * 1024;
inline constexpr uint8_t kMessageVersion = 1;

enum class Kind : uint8_t {
    // down
    intent = 1,   // prepare epoch e
    targets = 2,  // a part of the target table
    news = 3,     // version v: raises, demands, licences, revocations
    freeze = 4,   // the safe state is declared
    // up
    report = 16,  // a part of what this rank (or subtree) has begun and is obliged to
    raise = 17,
    demand = 18,
    licence = 19,
    revoke = 20,
    safe = 21,
};

}  // namespace fermata::clock
