// /proc/self/cmdline, and what `ps` shows, are read by the kernel from memory: from where the program's words
// lie, in the upper half, once it has been told.
#pragma once

namespace fermata::split {

// The words lie from begin to end, one behind the other, each with its zero. Where the kernel cannot be told
// (no CONFIG_CHECKPOINT_RESTORE) it goes on showing the lower half's.
void show_command_line(const char* begin, const char* end) noexcept;

}  // namespace fermata::split
