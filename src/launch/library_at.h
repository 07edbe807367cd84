// An MPI library that is named by its place (`--mpi PATH`): a tree with bin/mpiexec and lib/libmpi.so.12
// (MPICH's ABI, also Intel MPI) or lib/libmpi.so.40 (Open MPI 4 and 5). The lower half is the one built
// against Debian's library of that ABI.
#pragma once

#include <map>
#include <string>

#include "launch/library.h"

namespace fermata::launch {

// Does --mpi name a place?
bool names_a_place(const std::string& wanted);
// Throws Error when there is no library, no launcher, or no lower half for it.
Library library_at(const std::string& place, const Places& places);
// Makes the library found by its lower half: a directory of links below `directory`, and the variables that
// ranks need.
std::map<std::string, std::string> reach_library(const Library& library, const std::string& directory);

}  // namespace fermata::launch
