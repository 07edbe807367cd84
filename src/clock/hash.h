// Numbers that look random and are the same in every rank. All that matters is that they spread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "clock/types.h"

namespace fermata::clock {

inline uint64_t hash_of(uint64_t value) {
    uint64_t x = value * 0x9e3779b97f4a7c15ull;  // 2^64 divided by the golden ratio (Knuth)
    return x ^ (x >> 32);
}
inline uint64_t hash_of(Uid uid) { return hash_of(static_cast<uint64_t>(uid)); }

// Odd constants of the finalizers of MurmurHash3 and of xxHash's authors: each spreads low bits upwards.
inline constexpr uint64_t kSpread1 = 0xff51afd7ed558ccdull, kSpread2 = 0xc4ceb9fe1a85ec53ull,
                          kSpread3 = 0x9fb21c651e98df25ull;

}  // namespace fermata::clock
