// This header prints what a job says of the copies of its ranks: in `fermata status`, and as the answer of
// `fermata replicas`.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace fermata::cli {

// `replicas`: of the answer's JSON (null or without ranks: the job has no message log, or wants no copies).
void print_copies(const nlohmann::json& replicas);

}  // namespace fermata::cli
