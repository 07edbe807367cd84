// This header moves a file from one Folder into another.
#pragma once

#include <stdio.h>

#include <string>

#include "files/folder.h"

namespace fermata::files {

// In place of what has the name there. False, with errno, when that cannot be done.
inline bool move(const Folder& from, const std::string& name, const Folder& to, const std::string& new_name) {
    return ::renameat(from.descriptor(), name.c_str(), to.descriptor(), new_name.c_str()) == 0;
}

}  // namespace fermata::files
