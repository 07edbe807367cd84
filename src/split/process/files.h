// Files that the program writes, as they were at the checkpoint.
//
// Which ones: those that the front has noted (split/noted_files.h) and those that are open for writing. The
// image knows of each (a list in the process state) what a restart does with it before anything of the
// program is back (put_back.cpp):
//
//     copy    all of its content lies in the generation's directory: grown at its end, it is cut;
//             changed in any other way, replaced or removed, it is put back
//     end     its size (too large for a copy, and only appended to): it is cut
//     large   neither: it is named
//     link    a symbolic link: made again
//     read    only read, and open: its content lies there, too; the file is not touched (read_files.h)
//     absent  written before, and not there at that moment: what is there now goes aside
//
// Nothing is lost by that: what is taken away is kept beside the file. A file that several ranks have in
// their list is in the care of one: whoever makes its place in `files/` first.
#pragma once

#include <string>

#include "split/process/parts.h"

namespace fermata::split::process {

// Reads files, with descriptors that are nobody's business: closing one of the program's would drop its POSIX
// locks. `descriptors` is what capture_descriptors found.
// `copies`: what was written for that.
Json capture_files(const Keep& keep, const Json& descriptors, Copies& copies, Lines& warnings);

}  // namespace fermata::split::process
