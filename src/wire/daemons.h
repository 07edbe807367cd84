// These messages travel between node daemons that stand above each other, and between them and the root:
// orders with their numbers, where a daemon stands, calls of the roll (docs/internals/tree.md). message.h has
// the rules of all messages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/generation.h"

namespace fermata::wire {

using Bytes = std::vector<std::byte>;

// Ranks first, first + 1, … first + count - 1. Lists of runs ascend; src/tree/ranks.h makes and checks them.
struct Run {
    int32_t first = 0;
    uint32_t count = 0;
    template <class F>
    void each(F&& f) {
        f(first, count);
    }
    bool operator==(const Run&) const = default;
};

// Ranks of one node that say the same of their job.
struct Group {
    int32_t node = -1;  // as the root calls it; -1: whoever sends this
    std::string host;   // as the ranks see it
    int32_t size = 0;   // of the job
    std::string mpi;
    std::string mpi_version;
    Generation restarted_from;
    std::vector<Run> ranks;
    std::vector<int32_t> pids;  // in the order of `ranks`
    template <class F>
    void each(F&& f) {
        f(node, host, size, mpi, mpi_version, restarted_from, ranks, pids);
    }
};

// ---- messages

// Root -> every node: `frame` is one of the messages of message.h, and the orders of the root are numbered,
// so that a daemon that comes to another parent hears what it has missed, and nothing twice.
struct Order {
    static constexpr uint16_t kType = 48;
    uint64_t number = 0;
    Bytes frame;
    template <class F>
    void each(F&& f) {
        f(number, frame);
    }
};

// Root -> one node, by way of those above it.
struct To {
    static constexpr uint16_t kType = 52;
    int32_t node = -1;
    Bytes frame;
    template <class F>
    void each(F&& f) {
        f(node, frame);
    }
};

struct Hop {
    int32_t node = -1;      // -1: the root
    std::string addresses;  // as in FERMATA_ROOT
    template <class F>
    void each(F&& f) {
        f(node, addresses);
    }
};

// Root -> a node that has said NodeHello: where it stands in the tree. Without a way it stays where it is.
struct Parent {
    static constexpr uint16_t kType = 49;
    int32_t node = -1;       // what the root calls it
    uint64_t heard = 0;      // the newest order so far
    std::vector<Hop> way;    // its parent, then whoever is above that; the root is last
    uint32_t beat_ms = 0;    // how often to be heard
    uint32_t silent_ms = 0;  // who is not heard for so long is lost
    template <class F>
    void each(F&& f) {
        f(node, heard, way, beat_ms, silent_ms);
    }
};

// Both ways: still here.
struct Beat {
    static constexpr uint16_t kType = 50;
    template <class F>
    void each(F&& f) {
        f();
    }
};

// Downwards, from the root to every daemon: the roll is called for the `number`th time
// (src/tree/roll_call.h). A daemon that has not answered this call yet answers Here to the parent that says
// it.
struct Roll {
    static constexpr uint16_t kType = 53;
    uint32_t number = 0;
    template <class F>
    void each(F&& f) {
        f(number);
    }
};

// A daemon's first message to a parent that is not where it said NodeHello.
struct Attach {
    static constexpr uint16_t kType = 124;
    int32_t node = -1;
    uint64_t heard = 0;     // the newest order it knows
    uint32_t answered = 0;  // the newest call of the roll that it has answered, to whomever; 0 = none
    template <class F>
    void each(F&& f) {
        f(node, heard, answered);
    }
};

// A connection in the tree has ended since this call of the roll: the root shall call again.
enum class Absence : uint32_t {
    left = 0,    // the connection to `node` has ended
    silent = 1,  // it was cut off, because nothing was heard of it for too long
    moved = 2,   // `node` has come here and had answered the call elsewhere
};
inline constexpr Absence kLastAbsence = Absence::moved;

struct Missing {
    static constexpr uint16_t kType = 126;
    uint32_t roll = 0;
    int32_t node = -1;
    Absence how = Absence::left;
    template <class F>
    void each(F&& f) {
        f(roll, node, how);
    }
};

// These daemons answer a call of the roll, with all ranks that they have. It replaces what was said of them.
struct Here {
    static constexpr uint16_t kType = 125;
    uint32_t roll = 0;
    std::vector<int32_t> nodes;
    std::vector<Group> groups;
    template <class F>
    void each(F&& f) {
        f(roll, nodes, groups);
    }
};

}  // namespace fermata::wire
