// StreamRing is the memory in which a rank's stream waits for its copy: the rank writes it, the copy reads it
// (src/front/logged/ring.h). A copy on another node has one of its own, which the node daemons fill
// (src/transfer): then a record outlives the rank's node once it has arrived there.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fermata {

struct StreamRing {
    // Bytes since the beginning: by the rank; by whoever takes them; that have reached the copy's node.
    alignas(64) volatile uint64_t written;
    alignas(64) volatile uint64_t read;
    alignas(64) volatile uint64_t arrived;
    alignas(64) volatile uint32_t closed;  // one of both ends is gone
    // 1: a copy on another node follows, and only what has arrived there is stable. Before that nobody has
    // what the rank writes: its death ends the job, or takes it back.
    volatile uint32_t elsewhere;
    volatile uint32_t given_up;  // 1: by the rank, since it takes nothing; elsewhere only
    // A futex: 1 while the daemon that carries the bytes sleeps until some are written.
    alignas(64) volatile uint32_t sleeps;
    uint64_t size;  // of data
    alignas(64) uint8_t data[];
};

// Why a process that has a rank's place gets no copy yet: there is one once it has heard all of its stream.
inline constexpr char kStillFollows[] = "this is a copy itself";

inline constexpr size_t kStreamRingBytes = size_t{64} << 20;  // data of each

}  // namespace fermata
