// Files that the program of a copy has open for writing: the rank writes them, and the copy writes *shadows*,
// files without a name (log_files.h). Once the copy has the rank's place its program has the files
// themselves, at the places where it was, with all that it had written.
//
// Only descriptors that neither read nor append: of those a byte is written by this program alone, whoever
// else writes the file elsewhere.
#pragma once

#include <cstdint>
#include <string>

#include "base/fd.h"

namespace fermata::lower {

// Why a copy cannot have a shadow of the program's descriptor; "" = it can.
std::string why_no_shadow(int descriptor);
// Replaces all descriptors of the program that write files by descriptors of shadows. Throws fermata::Error.
void write_to_shadows();
// A shadow of a file that the copy's program opens now: `real`, no longer than `size` bytes for it; -1: its
// name is no more. A descriptor of the lower half: the program opens the file behind it.
int begin_shadow(Fd real, int64_t size);
// Puts into the files what the program has written to their shadows, and gives it their descriptors. Throws
// fermata::Error.
void write_to_files();

}  // namespace fermata::lower
