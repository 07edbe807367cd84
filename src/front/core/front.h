// The one context of the core library: what every wrapper looks at.
//
// It lives in the library's data, upper memory at a fixed address, so it is part of the image. Words that
// hold something of the lower half (bridge, table, direct) are rewritten at restart: use_bridge() of
// services/services.cpp fills them then and at the first start. A checkpoint sets `careful` there, too.
#pragma once

#include <cstdint>

#include "fermata_table.h"
#include "split/bridge.h"

namespace fermata::clock {
class RankClock;
}

namespace fermata::front {

// Bits of Front::careful. Any bit sends the calls of point-to-point to the careful tier: the one branch of
// the hot ones.
enum CarefulBit : uint32_t {
    kPending = 1,  // a checkpoint is on its way: between INTENT and resume
    kFrozen = 2,   // nothing new may be handed to MPI: wrappers go to a stop point
    kQueued = 4,   // pulled messages wait in the queue
    kOwed = 8,     // synchronous sends wait for a receipt: see requests/synchronous.h
    kLogged = 16,  // the job keeps a message log: see requests/logged.h
};

// Bits of Front::watch.
enum Watch : uint32_t {
    kThreads = 1,   // as `threads`: labels for the collective clock
    kChannels = 2,  // the program has sent in synchronous mode: messages that follow are counted
};

enum class Life : uint32_t { before = 0, running = 1, finalized = 2 };

struct Front {
    // Hot words, one cache line, read by every wrapper and written only by checkpoints.
    alignas(64) volatile uint32_t careful;  // CarefulBit
    volatile uint32_t watch;                // Watch bits: what else a send has to be noted for
    volatile uint32_t attention;  // 1 while kPending or kFrozen: `stop` word of the lower spin loops
    uint32_t threads;             // 1: the application runs MPI_THREAD_MULTIPLE: pools lock
    Life life;
    const mpi::Table* table;  // == bridge->mpi
    clock::RankClock* clock;
    int32_t world_rank;
    int32_t world_size;
    int32_t thread_level;       // what MPI_Init_thread gave the application (standard value)
    int32_t library_level;      // what the lower half has
    uint64_t restarts;          // changes at every restart: whoever cached a real handle compares
    volatile uint32_t follows;  // 1: this process is a rank's copy (logged/follow.cpp), and writes no files
    uint64_t main_fs;           // thread pointer of the thread that called MPI_Init
    mpi::Direct direct;         // == bridge->mpi->direct, a load nearer
    uint64_t ended_send;        // == *direct.ended_send
    mpi::Direct::Look look;     // == *direct.look_at_receive
};

extern Front front;

void add_watch(Watch bits) noexcept;
// Sets or clears bits of Front::careful (agent and threads may race: atomic) and keeps `attention` in step.
void set_careful(uint32_t bits) noexcept;
void clear_careful(uint32_t bits) noexcept;

}  // namespace fermata::front

// The services by which the lower half reaches the upper half (services/services.cpp), and the front's
// pointer to the lower half.
extern "C" fermata::split::UpperServices fermata_upper;
