// Programs in Go make their system calls themselves: the run time stops its threads with tgkill, by numbers
// that it asked for when they began, and what a program asks of its process goes past libc. After a restart
// these calls are led to the front, which knows what the numbers mean (UpperServices::raw_call).
#pragma once

#include <string>

namespace fermata::split::ids {

using RawCall = long (*)(long, long, long, long, long, long, long) noexcept;

// Changes the code of all objects in the upper half's memory that say they are Go's. At a restart, before
// anything of the program runs; in the image from then on. Empty, or a line: what will go wrong.
std::string lead_go_calls(RawCall to);

}  // namespace fermata::split::ids
