// Instruction sets of this node's CPU that a program may have chosen its code by. A program looks once, when
// it and its libraries are loaded (glibc's memcpy, OpenBLAS' kernels), and goes on with that choice after a
// restart: on a CPU that lacks one of them it would be ended by SIGILL in the middle of its work.
#pragma once

#include <string>

namespace fermata::lower {

// Names as in /proc/cpuinfo, separated by spaces.
const std::string& cpu_instructions();
// The same with all that concerns kernels only: another build may know more names.
const std::string& cpu_flags();
// Lists the instructions of `wanted` that `present` lacks.
std::string missing_instructions(const std::string& wanted, const std::string& present);

}  // namespace fermata::lower
