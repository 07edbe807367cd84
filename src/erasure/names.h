// This header names the files of erasure code in the directory of a generation, beside the images.
#pragma once

#include <string>

namespace fermata::erasure {

// The file with a node's contents of the generation; the members of a group read each other's before they
// make parity.
inline constexpr const char* kContentsFile = "contents.rs";
inline constexpr const char* kParityFile = "parity.rs";
// Until it is whole; nobody else is given a name that begins with a dot.
inline constexpr const char* kUnfinishedParity = ".parity.rs";
// A file that is being rebuilt, of whatever name.
inline constexpr const char* kRebuiltFile = ".rebuilt.rs";

inline bool is_name_of_parity(const std::string& name) {
    return name == kContentsFile || name == std::string(kContentsFile) + ".new" || name == kParityFile ||
           name == kUnfinishedParity || name == kRebuiltFile;
}

}  // namespace fermata::erasure
