// This header makes the environment of every rank, whichever launcher starts it.
#pragma once

#include <string>
#include <vector>

#include "launch/plan.h"

namespace fermata::launch {

// Changes the environment of this process: the plan's variables, and what the libraries read before main.
// Nothing throws here: it runs in the child that becomes a launcher.
void set_rank_environment(const LaunchPlan& plan);
// Variables that this library needs, whatever the user says: NAME=VALUE.
std::vector<std::string> needed_by(const Library& library);
// Says so when a variable of the user's is not used.
void warn_of_unused_variables();

}  // namespace fermata::launch
