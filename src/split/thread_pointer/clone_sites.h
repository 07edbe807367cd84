// New threads of the lower half: the kernel sets their FS base (CLONE_SETTLS) and leaves them their parent's
// GS base.
#pragma once

#include <string>

namespace fermata::split::thread_pointer {

// From now on a thread that the lower half's libc makes begins with a GS base equal to its FS base. "" or why
// this libc could not be changed. Once per process, before a second thread exists.
std::string follow_new_threads();

}  // namespace fermata::split::thread_pointer
