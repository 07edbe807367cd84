// Files in /dev/shm by which the MPI library shares memory with other ranks: their names are noted where the
// node daemon finds them, because a rank that is killed leaves its files behind (tree/shared_names.h).
#pragma once

namespace fermata::split {

// From here on names are noted in the file at `path`, which is made: a line "DEVICE INODE NAME" for each. The
// library is to start after this. Without the file nothing is noted.
void note_shared_names_in(const char* path) noexcept;

// The lower half maps this descriptor, to share it. Any context, no TLS.
void note_shared_mapping(int fd) noexcept;

}  // namespace fermata::split
