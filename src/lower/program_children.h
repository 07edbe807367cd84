// How children of the program have ended, for the process that goes on in the place of this one
// (split/ended_children.h). A front from before bridge version 17 has no table for it: waiting fails there
// with ECHILD, as it did.
#pragma once

#include <string>
#include <vector>

#include "split/process/children.h"

namespace fermata::lower {

// Notes in upper memory, while all threads stand, what the program's processes are called on this node, and
// how these have ended; of those that run still that they are killed, where nothing of them goes on (`lost`).
// Returns a warning, or "".
std::string note_children(const std::string& node, const std::vector<split::process::Child>& children,
                          bool lost);

// This process answers for those that an earlier one has noted.
void take_over_ended_children();

}  // namespace fermata::lower
