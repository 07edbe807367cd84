// The words of one subcommand, sorted before CLI11 sees them: Fermata's options, mpiexec's, and the program
// with all that follows it, which nobody may look into for options. A lone ":" ends a program, as mpiexec has
// it; then come mpiexec's options for the next one.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace fermata::cli {

// Another program of the same job, behind a ":".
struct ScannedPart {
    std::string ranks;  // as it stands there; "" = not said
    std::vector<std::string> launcher, command;
};

struct Scanned {
    std::vector<std::string> own;       // the subcommand's options, for CLI11
    std::vector<std::string> launcher;  // mpiexec's, with what follows each
    std::vector<std::string> command;   // the program and its arguments
    std::vector<ScannedPart> more;      // programs behind it
    bool help = false;
};

// `words`: what follows the subcommand's name. Throws Error (exit code 2) that names the word and what to do.
Scanned scan(const CLI::App& subcommand, const std::vector<std::string>& words);

}  // namespace fermata::cli
