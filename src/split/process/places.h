// Folders that a restart may not find as they were: the one for temporary files, and those of a project that
// was copied or moved.
#pragma once

#include <string>
#include <string_view>

namespace fermata::split::process {

// TMPDIR as the program has it: the lower half's at the first start, then what the image says.
const std::string& temporary_folder();

// A line for each of these, or none: the missing TMPDIR was made again; the checkpoint lies in another folder
// than it was made in (`directory`: of the generation, now) and the program goes on in the old one.
std::string make_temporary_folder(std::string_view state);
std::string say_of_another_place(std::string_view state, const std::string& directory);

}  // namespace fermata::split::process
