// The library's own functions that lead to other processes, which Fermata's own launcher does not serve: what
// the library says of that names no launcher, and now and then nothing at all.
#pragma once

#include "fermata_table.h"

namespace fermata::lower {

// binding_table(), or one whose functions that fail for want of a launcher say so in one line, once a
// process.
const mpi::Table& table_of_launcher();

}  // namespace fermata::lower
