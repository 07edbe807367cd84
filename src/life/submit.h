// `fermata run` and `fermata restart`: everything between the command line and the supervisor.
#pragma once

#include "life/options.h"

namespace fermata::life {

// Both stay in the foreground and return the exit code. Throw Error before anything was started.
int run(const SubmitOptions& options);
int restart(const SubmitOptions& options);

}  // namespace fermata::life
