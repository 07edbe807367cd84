// The differences between the three protocols, as data. The state machine is one.
#pragma once

#include "clock/types.h"

namespace fermata::clock {

struct Policy {
    const char* name;
    bool demands;         // a waiting rank that is needed elsewhere asks for the message it waits for
    bool park_at_exit;    // wait for new targets also at the end of a collective (the published algorithm)
    bool count_at_start;  // a non-blocking collective obliges when started, not when its completion is told
    bool barrier_first;   // wrappers run a barrier on the communicator before every blocking collective
};

constexpr Policy policy_of(Protocol protocol) {
    switch (protocol) {
        case Protocol::cc:
            return {"cc", false, true, true, false};
        // Two-phase commit: its barrier is an Ibarrier that a checkpoint may interrupt, so nobody is ever
        // caught in front of a peer inside the collective proper. The machinery below it is CC-D's.
        case Protocol::two_pc:
            return {"2pc", true, false, false, true};
        case Protocol::cc_d:
            break;
    }
    return {"cc-d", true, false, false, false};
}

// "cc-d", "cc" or "2pc"; false for anything else.
bool protocol_from_name(const char* name, Protocol* protocol);

}  // namespace fermata::clock
