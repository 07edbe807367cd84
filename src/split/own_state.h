// OwnState is what a program that saves its own state (libfermata) and the agent of its rank say to each
// other. It is in upper memory: the program reads and writes it by two functions of the front
// (front/posix/own_state.cpp), the agent by UpperServices::own_state.
#pragma once

#include <cstdint>

namespace fermata::split {

struct OwnState {
    // By the agent: the number of the job's newest wish for a save (0: none), and whether the program shall
    // end with it.
    volatile uint64_t asked;
    volatile uint32_t exit;
    // By the agent: the epoch of the newest checkpoint of this life that has captured this process; 0: none.
    volatile uint32_t captured;

    // By the program. `said` counts two for each time, and is odd while it writes.
    volatile uint32_t said;
    uint32_t exists;  // there is something that a new start of the program would restore
    uint32_t saves, failures;
    uint32_t began;    // when the newest save did: wire::OwnState
    uint64_t answers;  // the newest wish that the newest save, or failure, is the answer to
    uint32_t generation;
    int64_t step;
    char text[1024];  // the directory, or why the newest save has failed
};

}  // namespace fermata::split
