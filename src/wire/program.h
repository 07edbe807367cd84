// The messages between the root and a program that saves its own state (libfermata), by way of its agent.
#pragma once

#include <cstdint>
#include <string>

#include "base/generation.h"

namespace fermata::wire {

// Tells all agents that the program shall save its own state, and with `exit` end then. Answer: an OwnState
// whose `answers` is `number`, when the program has done so; said again until then.
struct AskProgram {
    static constexpr uint16_t kType = 59;
    uint64_t number = 0;  // 0: nothing any more
    bool exit = false;
    template <class F>
    void each(F&& f) {
        f(number, exit);
    }
};

// News from the agent of a rank that leads a set of ranks with a state of their own.
struct OwnState {
    static constexpr uint16_t kType = 89;
    bool exists = false;  // a new start of the program would go on from something
    bool saved = false;   // since the last message: the program has saved itself
    bool failed = false;  // likewise: it could not, `text` says why
    // When the newest save began: 1 + the epoch of the checkpoint of this life that had captured the program
    // last (1: none), 0: before this life. Messages may come late, so that their order says nothing.
    uint32_t began = 0;
    uint64_t answers = 0;
    Generation generation;  // the newest one; none: nothing was saved or restored yet
    uint64_t step = 0;      // a signed number, as two's complement
    std::string text;       // the directory of the generations
    template <class F>
    void each(F&& f) {
        f(exists, saved, failed, began, answers, generation, step, text);
    }
};

}  // namespace fermata::wire
