// This header names the copies of the program's files in the directory of a generation
// (docs/formats/files.md).
#pragma once

#include <algorithm>
#include <string>

namespace fermata::files {

// The directory that holds them, in that of the generation.
inline constexpr const char* kKeptFolder = "files";

// Their names: 32 digits of lower case. Nothing else is ever made, read or removed there.
inline bool is_kept_name(const std::string& name) {
    return name.size() == 32 && std::all_of(name.begin(), name.end(), [](char c) {
               return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
           });
}

}  // namespace fermata::files
