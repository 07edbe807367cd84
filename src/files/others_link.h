// Links in the paths of the program's files are the user's own and are followed. Where others may put names,
// one of them can put a link in the place of a file, or of a directory above it, that leads to another file
// of the same user: the program would go on writing to that one.
#pragma once

#include <string>

namespace fermata::files {

// Which link on the way of an absolute path is of somebody whom we do not believe (owners.h): "" when none
// is.
std::string others_link(const std::string& path);
// The same of a file that was opened by this path; also when the way leads elsewhere by now.
std::string others_link(const std::string& path, int fd);

}  // namespace fermata::files
