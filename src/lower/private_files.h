// Files that the program of a copy both reads and writes, or appends to. Shadows of such files have all that
// the program may read (split/private_files.h). Once the copy lives they are put into the files: what the
// rank had written beyond them is taken out again, since the program might read it before it writes it anew.
//
// So nobody else may write such a file meanwhile. That is looked for on this node; and where a program closes
// one, rank and copy compare what is in it.
#pragma once

#include <string>

#include "base/fd.h"
#include "split/private_files.h"

namespace fermata::lower {

// Says whether the program's descriptor is of that kind.
bool is_private(int descriptor);
// Why a copy cannot have a shadow of it; "" = it can.
std::string why_not_private(int descriptor);
// Replaces all such descriptors by those of shadows. Throws fermata::Error.
void keep_private_files();
// A shadow, for the program to open. Throws fermata::Error.
Fd begin_private_file(const split::PrivateWish& wish);
// Puts the shadows into their files, and gives these to the program. Throws fermata::Error.
void take_private_files();

}  // namespace fermata::lower
