// link_library() makes an MPI library that is elsewhere (`--mpi PATH`), and perhaps called otherwise,
// findable by the name that a lower half asks for: links on this node, since the run directory of the job's
// first node does not exist on the others.
#pragma once

#include <string>

#include "wire/renewal.h"

namespace fermata::noded {

// Makes links to everything in the library's folder, in a folder of `directory`, one for each library; its
// path. Throws fermata::Error.
std::string link_library(const wire::LibraryPlace& library, const std::string& directory);
// A list of folders, such as LD_LIBRARY_PATH, with another one in front.
std::string in_front(const std::string& folder, const std::string& before);

}  // namespace fermata::noded
