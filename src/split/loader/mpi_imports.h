// This header finds the names of MPI that a program and its libraries ask for, and what they get. Modules
// that they open while they run (Python's, plugins) are not seen.
#pragma once

#include <string>
#include <vector>

#include "split/loader/program.h"

namespace fermata::split {

struct MpiImports {
    std::vector<std::string> functions;  // all: "MPI_Send", "mpi_send_"
    std::vector<std::string> absent;     // of these: in no library, the program would end at the call
    std::vector<std::string> refused;    // of these: answer MPI_ERR_UNSUPPORTED_OPERATION
};

// `check`: of inspect_program, without an error. `front_dir`: where the fronts are.
MpiImports mpi_imports(const ProgramCheck& check, const std::string& front_dir);

// The MPI library that a lower half is linked with.
struct MpiLibrary {
    std::string path;                  // "" = not found
    size_t known = 0;                  // functions of MPI that Fermata has; handle conversions aside
    std::vector<std::string> lacking;  // of these: what the library has not, natively
};
MpiLibrary mpi_library_of(const std::string& lower, const std::string& front_dir);

}  // namespace fermata::split
