// This header has `fermata replicas`, and what a job says of the copies of its ranks as text, which `fermata
// status` prints, too.
#pragma once

#include <CLI/CLI.hpp>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "cli/commands.h"

namespace fermata::cli {

struct ReplicasWords {
    JobChoice which;
    std::string of, timeout;
    bool json = false;
};
// Without the choice of a job.
void add_replicas(CLI::App* app, ReplicasWords& words);
ReplicasOptions options_of(const ReplicasWords& words);

// `replicas`: of the answer's JSON (null or without ranks: the job has no message log, or wants no copies).
void print_copies(const nlohmann::json& replicas);

}  // namespace fermata::cli
