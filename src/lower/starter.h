// A start that is none yet: `fermata run -- env A=1 ./prog`, scripts, `timeout`, … What mpiexec was given
// does not use MPI itself. It runs natively, with a library (src/starter) that starts the lower half again
// for the MPI program when that one comes.
#pragma once

#include <string>
#include <vector>

#include "split/loader/program.h"
#include "tree/agent_link.h"

namespace fermata::lower {

struct StarterStart {
    std::string program;  // as the user wrote it
    std::vector<std::string> arguments;
    split::ProgramCheck check;
    std::string lower;      // this program
    std::string directory;  // where it and the library lie
};

// Replaces this process by the starter. Throws Error when it cannot be executed.
[[noreturn]] void run_starter(const StarterStart& start, const tree::AgentConfig& config);

// The launcher's SIGTERM, which follows, is no failure of the starter.
void tell_starter_of_end();

// This rank leaves by itself: the starters above it, which wait for its end, do so first, with exit code 0.
void end_starter();

// The same library beside this lower half, for programs that the application starts; null when LD_PRELOAD
// cannot name it.
const char* guard_library(char* path, size_t size);

// Was this lower half started by a starter?
bool comes_from_starter();
// Then: the program's own environment is put back, and the rank is claimed for `program`. "" or why this rank
// cannot run it: it has run one already.
std::string take_over_from_starter(const std::string& program, const tree::AgentConfig& config);

}  // namespace fermata::lower
