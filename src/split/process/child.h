// The rest of a process in a child that is to go on in its place: what fork() does not hand over, and what a
// second lower half cannot find out. The other way to go on, a restart from an image, is in state.h.
#pragma once

#include <string>
#include <vector>

#include "split/process/state.h"

namespace fermata::split::process {

struct ForChild {
    std::string state;                  // for restore_in_child() and restore_timers()
    std::string notes;                  // for resume_notes()
    std::vector<int> descriptors;       // of the lower half's, that the child needs
    std::vector<std::string> warnings;  // one line each
};
// Called by the agent while every thread of the program stands. Throws fermata::Error for what no child can
// have: locks, children and descriptors of this process, and all that no image can hold.
ForChild prepare_child(const Limits& limits);

// In the child: before anything else of this room, and with all threads made.
void resume_notes(const std::string& notes);
Restored restore_in_child(const std::string& state, const Limits& limits);

}  // namespace fermata::split::process
