// This header finds, and removes, what jobs that were killed have left on this machine.
#pragma once

#include <cstdint>
#include <vector>

#include "cli/finding.h"

namespace fermata::cli {

// Looks for it, of all users when root asks, and removes it when told to: never anything of a job that runs,
// and no generation that a restart may still want. Each user's is looked at with that user's rights.
Finding look_for_leftovers(bool remove);

}  // namespace fermata::cli
