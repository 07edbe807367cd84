// The MPI libraries of this machine, and where this installation of Fermata keeps its parts.
#pragma once

#include <string>
#include <vector>

namespace fermata::launch {

// Where this installation keeps its parts, relative to the command itself (the tree may be moved).
struct Places {
    std::string libexec;    // lower-<mpi>, noded; $FERMATA_LIBEXEC overrides
    std::string front_dir;  // the MPI fronts
};
Places find_places();

// One MPI library of this machine, as far as Fermata can use it.
struct Library {
    std::string mpi;      // "openmpi", "mpich"
    std::string lower;    // the lower half's program; empty = not built
    std::string mpiexec;  // absolute path; empty = not found
    std::string root;     // --mpi PATH: where this library is installed; empty: the one it was built with
    // `launched`: by its own mpiexec.
    bool usable(bool launched) const { return !lower.empty() && !(launched && mpiexec.empty()); }
};
// All that are known, usable or not.
std::vector<Library> all_libraries(const Places& places);
// The one the user means by --mpi: a name, or a path (library_at.h); "auto" takes the one of `preferred` (""
// = none). `launched`: its own mpiexec is needed, too. Throws Error.
Library choose_library(const std::string& wanted, const std::string& preferred, const Places& places,
                       bool launched);
// Throws Error when this library has no mpiexec.
void need_mpiexec(const Library& library);
// Whether its mpiexec can be run as it is, and ends well.
bool says_its_version(const Library& library);
// First line of `mpiexec --version`.
std::string version_of(const Library& library);

// Whether the mpiexec of this library (first line of MPI_Get_library_version) says nothing of a lost node and
// exits with 0: Open MPI's from version 5 on.
bool hides_lost_nodes(const std::string& version);

// The differences between the launchers of the libraries.
struct LauncherKind {
    const char* mpi;
    std::vector<const char*> names;  // of its launcher, the unmistakable ones first
    const char* version_word;        // in the output of --version, for the ambiguous ones
    const char* oversubscribe;       // option needed for more ranks than cores, or nullptr
    const char* as_root;             // option needed by root, or nullptr
    const char* export_option;  // passes one variable to ranks on other nodes, or nullptr: all are passed
};
const LauncherKind& kind_of(const std::string& mpi);

}  // namespace fermata::launch
