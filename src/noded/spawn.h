// spawn() starts the process of one rank as a child of the node daemon, which ends with it.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/fd.h"

namespace fermata::noded {

struct SpawnSpec {
    std::vector<std::string> words;  // words[0] is a path
    std::string directory;
    std::vector<std::string> environment;  // all of it
    int input = -1, output = -1, error = -1;
    int kept = -1;                // one more descriptor that it keeps; -1 = none
    std::vector<int> processors;  // to be bound to; empty = all
};

struct Child {
    pid_t pid = -1;  // and its process group
    Fd process;      // pidfd: readable when it has ended
    Fd starting;     // until confirm(): what has kept it from running its program
    Fd words;        // of a rank's copy: the file that is its standard error
};

// Returns before the program runs: ranks start side by side. Throws Error with a line when it cannot be
// started.
Child spawn(const SpawnSpec& spec);
// Waits until the program runs. Throws Error with a line when it does not.
void confirm(Child& child, const std::string& program, const std::string& directory);

}  // namespace fermata::noded
