// A real MPI library in the upper half: it talks to a world of its own, and an image of it cannot be
// continued.
#pragma once

#include <string>

namespace fermata::lower {

// Its path, "" = none. Where ld.so asks the auditor (src/front/which) there can be none; a program may have a
// loader of its own. Files that were looked at before are not read again.
std::string mpi_above();

}  // namespace fermata::lower
