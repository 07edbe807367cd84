// File descriptors are partitioned by number: below lower_descriptor_base() they belong to the upper half,
// and that number is the hard limit that the program is told (front/posix/descriptor_limit.cpp).
#pragma once

#include <cstdint>
#include <vector>

namespace fermata::split {

// Before MPI_Init: notes what was inherited, moves the launcher's own channel (PMI_FD) up, and occupies every
// free low number, so that what MPI opens, by whatever path, comes at >= lower_descriptor_base(). Throws
// fermata::Error.
void begin_descriptors();
// A descriptor that libraries of the lower half open before main is moved up at once (raise_descriptor).
// After MPI_Init: frees the low numbers again and gives the application its own soft RLIMIT_NOFILE back.
// Afterwards the interposed open/socket/… of the lower half move their results up (fds/interpose.cpp).
void end_descriptors();

// First number of the lower half: the hard RLIMIT_NOFILE where it can be raised (root), else a little below;
// 64512 at most. Constant after begin_descriptors().
int lower_descriptor_base();
inline bool lower_descriptor(int fd) { return fd >= lower_descriptor_base(); }

// While one exists the soft limit is high enough for every number of the program and of the lower half.
class RaisedLimit {
  public:
    RaisedLimit() noexcept;
    ~RaisedLimit();
    RaisedLimit(const RaisedLimit&) = delete;
    RaisedLimit& operator=(const RaisedLimit&) = delete;
};

// Numbers that the lower half was seen to have, from lower_descriptor_base() on: bit 0 of word 0 is that one.
// A number that it has closed again stays in. Valid after end_descriptors(), for the life of the process.
struct OwnedDescriptors {
    const uint64_t* words;
    int count;  // of bits
};
OwnedDescriptors lower_descriptors();

// Is this still the pipe or socket (not 0, 1, 2) that was open when the process started? Launchers leak them
// into the ranks (Hydra: its own pipes and listening socket); the program cannot know what they are, and a
// restarted process has those of its own launcher. Valid after begin_descriptors().
bool launcher_channel(int fd);

// A pipe or socket of that kind, for a second lower half of this process: where it starts, what is open is
// the program's.
struct LauncherChannel {
    int fd;
    uint64_t device, inode;
};
std::vector<LauncherChannel> launcher_channels();
void resume_launcher_channels(std::vector<LauncherChannel> channels);  // after begin_descriptors()

// Moves an open descriptor of the lower half up (closing `fd`), close-on-exec set. Returns the new number, or
// `fd` itself when the table is full. No TLS, raw system calls; fd < 0 is returned as it is.
int raise_descriptor(int fd) noexcept;

}  // namespace fermata::split
