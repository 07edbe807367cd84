// Which generation a job is continued from.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "life/options.h"
#include "store/store.h"

namespace fermata::life {

// Which of a directory's generations may be continued when none is named.
struct Candidates {
    std::optional<uint64_t> job = {};    // only this one's
    bool fallback = false;               // pass over damaged ones
    bool ended_too = false;              // also of jobs that ended with 0
    std::optional<uint32_t> below = {};  // only older ones
};

// The generation to restart from, with its images checked; older ones when `which` allows. When only nodes
// can say whether it can be had, behind it those that it may be instead: down to the first that is intact in
// files. Throws Error.
std::vector<store::GenerationInfo> choose_generation(const store::Store& store, const SubmitOptions& options,
                                                     const Candidates& which);

// One line for people.
std::string command_line(const std::vector<std::string>& words);

}  // namespace fermata::life
