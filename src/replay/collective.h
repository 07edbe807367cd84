// Says what a collective call is to the log: its kind, and the form in which a member issues it: normally,
// and when a recovery finds that some members were told it and some were not.
#pragma once

#include "replay/memory.h"
#include "replay/rules.h"
#include "replay/types.h"

namespace fermata::replay {

// The v, w and block forms are like their relatives, Exscan like Scan.
enum class Kind : uint8_t {
    barrier,
    bcast,
    scatter,
    gather,
    reduce,
    allreduce,
    allgather,
    alltoall,
    scan,
    reduce_scatter,
    create,  // of a communicator
    free,    // likewise
};

struct Arguments {
    Kind kind;
    std::optional<Rank> root;    // of those that have one
    bool order_matters = false;  // reductions: another order of evaluation gives other bits
    bool blocking = true;        // as the program called it
    bool overwrites = false;     // the input lies where the result goes
};

// The form in which a member takes part below.
enum class Way : uint8_t {
    native,       // the library's call as the program made it (blocking or not)
    twin,         // the non-blocking form, from the input
    from_result,  // Ibcast of the result, from the lowest member that was told
    pass,         // not at all: complete at once
};

// An instance that some members were told and some not, and which.
struct Planned {
    Instance instance;
    Vec<Rank> told;  // ascending, neither none nor everybody
    // A creation: the communicators that it made and that are rebuilt. A member of one adopts it; one that is
    // in none, but shall have one, makes the real one with its other members (who all see the same): those
    // who were told have none of it.
    Vec<Uid> made{};
    bool was_told(Rank rank) const;
};

// Undisturbed, and when nobody was told.
Way normal_way(const Arguments& call, Rules rules);
// The form for an instance of the plan; `pass` of a member that was told it: it owes nothing.
Way planned_way(const Arguments& call, const Planned& planned, Rank me, Rules rules);

}  // namespace fermata::replay
