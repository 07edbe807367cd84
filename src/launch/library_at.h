// An MPI library that is named by its place (`--mpi PATH`): a tree with bin/mpiexec and, in lib or
// lib64, libmpi.so.12 (MPICH's ABI, also Intel MPI) or libmpi.so.40 (Open MPI 4 and 5). The lower half is the
// one built against Debian's library of that ABI.
#pragma once

#include <string>
#include <vector>

#include "launch/library.h"
#include "wire/renewal.h"

namespace fermata::launch {

// Does --mpi name a place?
bool names_a_place(const std::string& wanted);
// Throws Error when there is no library, no launcher, or no lower half for it.
Library library_at(const std::string& place, const Places& places);
// Where a system that has several keeps this one ("openmpi", "mpich"), with its launcher, for modules to put
// into PATH (RHEL, Fedora, SUSE): names a place, "" = it has none.
std::string kept_for_modules(const std::string& mpi);
// The folder with its files, the library's file there, and the name by which the lower half asks for it.
// Throws Error when the library, which is named by its place, has gone.
wire::LibraryPlace place_of(const Library& library);
// Words that a launcher starts in front of the lower half, so that this one finds its library
// (noded/reach.cpp); nothing for the library that Fermata was built with.
std::vector<std::string> words_to_reach(const Library& library);

}  // namespace fermata::launch
