// This header checks a program before anything is started: the checks of execvp and the kernel, without side
// effects. Library target `fermata-program`: used by the command line before mpiexec, and by the loader.
#pragma once

#include <string>
#include <vector>

namespace fermata::split {

enum class MpiAbi { none, openmpi, mpich, standard };
const char* name_of(MpiAbi abi);

// One way to an MPI library, and what comes of it.
struct MpiAsked {
    std::string by;     // path of who asks, or "LD_PRELOAD"
    std::string asked;  // a name or a path, as it stands there
    std::string found;  // what it would get natively; "" = nothing
    std::string given;  // the front; "" = there is none
};

struct ProgramCheck {
    std::string error;  // "" when the program can be started; else one line: what, where, what to do

    std::string program;  // absolute path of what was asked for (a script's own path for scripts)
    std::string binary;   // the ELF file that runs, links resolved (what /proc/self/exe names): the
                          // interpreter for scripts
    std::vector<std::string> prefix;  // arguments before the user's: {} or {interpreter, [option,] script}
    std::string loader;               // PT_INTERP of `binary`
    bool position_independent = true;

    MpiAbi abi = MpiAbi::none;           // which ABI the transitive DT_NEEDED closure imports
    std::vector<std::string> mpi_names;  // every front it needs, by its soname: "libmpi.so.40", …
    std::vector<MpiAsked> which;         // how it comes to them
    std::vector<std::string> libraries;  // absolute paths of the closure, in load order
    std::vector<std::string> preloaded;  // absolute paths of LD_PRELOAD's, without what these need
    std::vector<std::string> missing;    // names found nowhere (ld.so will complain)
};

// Runs natively until it starts the MPI program (starters.h): it imports no MPI, and cannot load it later or
// is known not to.
bool is_starter(const ProgramCheck& check);
// "" or why Fermata cannot follow where this program starts others.
std::string why_no_starter(const ProgramCheck& check);

// `environment`: for PATH and LD_LIBRARY_PATH; environ when nullptr. `front_dir`: where the fronts are ("" =
// unknown); names found there count as present and are not followed.
ProgramCheck inspect_program(const std::string& name, const std::string& front_dir = "",
                             char* const* environment = nullptr);

}  // namespace fermata::split
