// The words of the collective clock, as types. See docs/collective-clock.md for what they mean together.
#pragma once

#include <cstdint>

namespace fermata::clock {

// A communicator, the same number in all its members, never used twice in one job (also not after a restart).
enum class Uid : uint64_t {};

// The n-th collective call on one communicator, counted from 1; 0 = none yet.
using Instance = uint64_t;

// World rank of a process (virtual world: the one the application sees in MPI_COMM_WORLD).
using Rank = int32_t;

// Labels of point-to-point messages (communicator and tag) as a set: each stands for one of 64 bits, the same
// at sender and receiver, so a set may hold more than was meant, never less.
using Labels = uint64_t;
inline constexpr Labels kAnyLabel = ~Labels{0};
inline Labels label_of(Uid comm, int32_t tag) {
    uint64_t x = (static_cast<uint64_t>(comm) ^ static_cast<uint32_t>(tag)) * 0x9e3779b97f4a7c15u;
    return Labels{1} << ((x ^ x >> 29) * 0xbf58476d1ce4e5b9u >> 58);
}

// One checkpoint attempt. The root numbers them from 1; messages of older ones are ignored.
using Epoch = uint32_t;

// How many target broadcasts the root has sent within one epoch.
using Version = uint32_t;

// Which protocol finds the safe state. One implementation, three policies (clock/policy.h).
enum class Protocol : uint32_t {
    cc_d = 0,    // collective clock with demand targets: the one for production
    cc = 1,      // the published collective clock: for comparison; can deadlock with point-to-point messages
    two_pc = 2,  // a barrier before every blocking collective: for comparison; safe and slow
};

}  // namespace fermata::clock
