// Descriptors that the program has open, and how they are called in lines for people.
#pragma once

#include <string>
#include <vector>

namespace fermata::lower {

// Ascending. Throws fermata::Error.
std::vector<int> programs_descriptors();
// The path that the kernel knows.
std::string name_of(int descriptor);

}  // namespace fermata::lower
