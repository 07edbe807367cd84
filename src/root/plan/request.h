// One wish for a checkpoint, and what became of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/generation.h"
#include "journal/forecast.h"
#include "launch/renewal.h"
#include "tree/ranks.h"

namespace fermata::root {

struct Request {
    std::string origin;  // "command", "interval", "signal", "interrupt", "walltime", "measure"
    bool stop = false;
    double timeout = 0;  // 0 = the default
    int client = -1;     // who gets the answer
    // The program is asked to save its own state (own_state.h), and not its processes.
    bool own_state = false;
    // Nothing is saved: the ranks get new lower halves.
    std::optional<launch::Renewal> renewal{};
    // ... and the processes of these ranks stay behind as their copies.
    tree::Ranks copies{};

    // Nothing is saved for later: these ranks get copies on other nodes.
    tree::Ranks elsewhere{};

    // True for wishes of people and schedulers, and for one that ends the job: files are the place for it.
    bool is_to_last() const { return origin != "interval" || stop; }
};

struct Outcome {
    bool ok = false;
    ExitCode code = ExitCode::failed;
    std::string line;    // for people
    std::string detail;  // how long each phase took, likewise
    Generation generation;
    std::string directory;  // where it is; empty: in the job's directory
    uint64_t bytes = 0;
    double seconds = 0;                                  // request .. resume
    std::vector<std::pair<std::string, double>> phases;  // seconds, in order
    journal::Measured measured;                          // of a good one
    std::string diagnosis;
    std::vector<std::string> warnings;  // of the ranks: what the generation does not hold
};

}  // namespace fermata::root
