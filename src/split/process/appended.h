// Files that the program appends to. At a restart they hold what was written after the checkpoint and will be
// written again: it is set aside in a file beside and cut off, so that nothing is there twice and nothing is
// lost.
#pragma once

#include <cstdint>
#include <string>

namespace fermata::split::process {

// Cuts `path` back to `size` bytes. All ranks that have it open may call this at once, before any of them
// runs: the first one cuts. `aside` is the file with what was cut off, empty when there was nothing to do.
// Returns an empty string, or what failed (the file is untouched then).
std::string cut_back(const std::string& path, int64_t size, std::string* aside);

}  // namespace fermata::split::process
