// The supervisor gives a job that failed another life, from its newest generation, as long as that leads
// further (recovery.h).
#pragma once

#include "life/submission.h"

namespace fermata::life {

// The exit code of the last life. Throws Error when the first one could not start.
int supervise(Submission what);

// Says from what a life goes on.
void announce(const store::GenerationInfo& from);

}  // namespace fermata::life
