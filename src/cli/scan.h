// scan() sorts the words of one subcommand before CLI11 sees them: Fermata's options, mpiexec's options, and
// the program with all that follows it. Words behind the program are never taken for options. A lone ":" ends
// a program, as under mpiexec; mpiexec's options for the next program follow.
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
    bool has_directory = false;  // a word named it
    bool has_ranks = false;      // likewise
};

// `words`: what follows the subcommand's name. Throws Error (exit code 2) that names the word and what to do.
Scanned scan(const CLI::App& subcommand, const std::vector<std::string>& words);

}  // namespace fermata::cli
