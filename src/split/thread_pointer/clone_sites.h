// New threads of the lower half: the kernel sets their FS base (CLONE_SETTLS) and leaves them their parent's
// GS base.
#pragma once

#include <string>

namespace fermata::split::thread_pointer {

// Lets threads that the lower half's libc makes from now on begin with a GS base equal to their FS base. ""
// or why this libc could not be changed. Once per process, before a second thread exists.
std::string follow_new_threads();

}  // namespace fermata::split::thread_pointer
