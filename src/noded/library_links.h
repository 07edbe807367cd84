// reach_library() makes an MPI library that is elsewhere (`--mpi PATH`), and perhaps called otherwise,
// findable by the name that a lower half asks for: links on this node, since the run directory of the job's
// first node does not exist on the others.
#pragma once

#include <string>

#include "wire/renewal.h"

namespace fermata::noded {

// Makes links to everything in the library's folder, in a folder of `directory`, one for each library.
// Returns what LD_LIBRARY_PATH is then, `before` being what it was. Throws fermata::Error.
std::string reach_library(const wire::LibraryPlace& library, const std::string& directory,
                          const char* before);

}  // namespace fermata::noded
