// The FS base of upper threads while they are in the lower half: thread_pointer/redirect.h decides it,
// records of threads ask for it.
#pragma once

#include <cstdint>

namespace fermata::split::threads {

// Returns what the FS base of an upper thread whose donor's thread pointer is `lower_fs` has to be in the
// lower half; 0: whatever it is. Any context, no TLS.
uint64_t fs_below(uint64_t lower_fs) noexcept;

// Says whether crossings write FS, as they do until leave_fs().
bool crossings_write_fs() noexcept;
// Makes crossings write FS from now on.
void write_fs_from_now_on() noexcept;
// Makes crossings leave FS alone; `instead` (0: nothing) is written in its place, in tests.
void leave_fs(uint64_t instead) noexcept;

}  // namespace fermata::split::threads
