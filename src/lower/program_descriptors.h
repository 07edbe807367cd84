// Descriptors that the program has open, and how they are called in lines for people.
#pragma once

#include <string>
#include <vector>

#include "base/fd.h"

namespace fermata::lower {

// Ascending. Throws fermata::Error.
std::vector<int> programs_descriptors();
// The path that the kernel knows.
std::string name_of(int descriptor);

// The file behind it, opened once more: another place in it. None: errno says why.
Fd open_again(int descriptor, int flags);
// Descriptors that one open() has made, and which share a place in its file. Throws fermata::Error where the
// kernel does not say (kcmp).
using SamePlace = std::vector<int>;
std::vector<SamePlace> by_place(const std::vector<int>& descriptors);
// Gives them another open file, at the place where they are. Throws fermata::Error.
void put_in_place(const SamePlace& descriptors, Fd file);

}  // namespace fermata::lower
