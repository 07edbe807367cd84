// File descriptors are partitioned by number: below lower_descriptor_base() they belong to the upper half.
#pragma once

namespace fermata::split {

// Before MPI_Init: notes what was inherited, moves the launcher's own channel (PMI_FD) up, and occupies every
// free low number, so that what MPI opens, by whatever path, comes at >= lower_descriptor_base(). Throws
// fermata::Error.
void begin_descriptors();
// After MPI_Init: frees the low numbers again and gives the application its own RLIMIT_NOFILE back.
// Afterwards the interposed open/socket/… of the lower half move their results up (fds/interpose.cpp).
void end_descriptors();

// First number of the lower half: min(soft RLIMIT_NOFILE of the application, 16384), less when the hard limit
// leaves no room above. Constant after begin_descriptors().
int lower_descriptor_base();
inline bool lower_descriptor(int fd) { return fd >= lower_descriptor_base(); }

// Was this number open when the process started (0, 1, 2, the launcher's pipes)? Such descriptors are the
// upper half's, but a restarted process gets new ones from its own launcher. Valid after begin_descriptors().
bool inherited_descriptor(int fd);

// Moves an open descriptor of the lower half up (closing `fd`), close-on-exec set. Returns the new number, or
// `fd` itself when the table is full. No TLS, raw system calls; fd < 0 is returned as it is.
int raise_descriptor(int fd) noexcept;

}  // namespace fermata::split
