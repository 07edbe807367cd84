// Files for what a rank, or a copy, has no memory for: parts of its message log, what the copy writes. They
// have no name, so that they go with the last process that has them.
#pragma once

#include <string>

#include "base/fd.h"

namespace fermata::lower {

// Where they may be: $TMPDIR, this directory of the job on the node, /var/tmp. Before the upper half runs.
void note_places_of_log_files(const std::string& node_dir);
// Makes one, on a disk if there is one. A descriptor of the lower half, or an error of the kernel's (below
// 0). `place`: where it is. Also in threads of the upper half.
int make_log_file(const char** place) noexcept;

// A file for what a copy writes until it has its rank's place: like these, or in memory where no other can be
// made. A descriptor of the lower half. Throws fermata::Error.
Fd make_file_aside(const char* name);

}  // namespace fermata::lower
