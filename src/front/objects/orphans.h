// Orphans are real communicators of this rank that it was not told yet: others have made them with it, and a
// rebuilding makes them again with all members (docs/internals/message-log.md). They wait here for the call
// that tells of them.
#pragma once

#include <cstdint>

namespace fermata::front {

// The real communicator of this uid, which the caller has from here on; 0: there is none.
uint64_t orphan_taken(uint64_t uid) noexcept;
void orphan_kept(uint64_t uid, uint64_t real) noexcept;
// Those of an old lower half.
void orphans_forgotten() noexcept;

}  // namespace fermata::front
