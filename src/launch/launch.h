// Starting ranks through the site's own launcher. What the libraries' launchers differ in is data here.
#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

#include "split/loader/program.h"

namespace fermata::launch {

// Where this installation keeps its parts, relative to the command itself (the tree may be moved).
struct Places {
    std::string libexec;    // lower-<mpi>, noded; $FERMATA_LIBEXEC overrides
    std::string front_dir;  // the MPI fronts
};
Places find_places();

// One MPI library of this machine, as far as Fermata can use it.
struct Launcher {
    std::string mpi;      // "openmpi", "mpich"
    std::string lower;    // the lower half's program; empty = not built
    std::string mpiexec;  // absolute path; empty = not found
    std::string root;     // --mpi PATH: where this library is installed; empty: the one it was built with
    bool usable() const { return !lower.empty() && !mpiexec.empty(); }
};
// All that are known, usable or not.
std::vector<Launcher> all_launchers(const Places& places);
// The one the user means by --mpi: a name, or a path (library_at.h); "auto" takes the one of `preferred` (""
// = none). Throws Error.
Launcher choose_launcher(const std::string& wanted, const std::string& preferred, const Places& places);
// First line of `mpiexec --version`.
std::string version_of(const Launcher& launcher);

// Ranks that run one program: what stands between two ":" of the launcher's command line.
struct Part {
    int ranks = 0;  // 0 = the launcher's default
    std::string mpiexec_args;
    std::vector<std::string> program;  // with arguments; empty at a restart
    std::string program_path;          // where its first word was found; "" = ranks look for themselves
};
// The first part, and what is said once.
struct LaunchPlan : Part {
    Launcher launcher;
    std::vector<Part> more;                          // behind a ":" each
    std::map<std::string, std::string> environment;  // FERMATA_…, for every rank
    bool no_input = false;  // the launcher has none to hand on: rank 0 opens it itself
    int input = -1;         // a descriptor that becomes standard input; -1 = this process's
};
// The launcher's command line.
std::vector<std::string> command_of(const LaunchPlan& plan);
// Starts it as a child that gets SIGTERM when this process dies. Throws Error when it cannot be executed.
pid_t start(const LaunchPlan& plan);

// Words of a string as a shell splits them: blanks, '…', "…", backslash.
std::vector<std::string> split_words(const std::string& text);

}  // namespace fermata::launch
