// The launcher's 0, 1 and 2 (parts.h has what others need of them).
#pragma once

#include "split/process/descriptors/entry.h"

namespace fermata::split::process::descriptors {

// Which of them this is, -1 = none. A terminal is all three: then each number means itself, and a duplicate
// means output. Files, and /dev/null as output, are no launcher's: a starter has redirected the program
// (`./prog > log`), and they are the program's like any other.
int given_by_launcher(const Entry& entry);
// Is this number one of our own duplicates of them?
bool is_kept_inherited(int fd);

}  // namespace fermata::split::process::descriptors
