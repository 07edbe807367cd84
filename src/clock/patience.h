// How long a rank waits before it repeats what it does because of a guess.
#pragma once

#include <algorithm>
#include <cstdint>

namespace fermata::clock {

// Actions that follow from a guess are repeated ever more rarely, so that the guess cannot keep the job from
// a safe state; but not exponentially, since a chain of n dependencies takes n repetitions: linearly at
// first, and from the eighth time on with a square that is larger than that.
inline uint64_t patience(uint64_t delay, uint64_t times) {
    constexpr uint64_t kShortest = 10'000;  // ns: options of tests may say 0
    constexpr uint64_t kSquareFrom = 8;
    return std::max(delay, kShortest) * (1 + times + times * times / kSquareFrom);
}

}  // namespace fermata::clock
