// Facts about a Unix socket that only the kernel's socket diagnosis tells.
#pragma once

#include <cstdint>

namespace fermata::split::process::descriptors {

struct UnixFacts {
    uint64_t peer = 0;     // inode of the other end, 0 = unknown
    uint32_t waiting = 0;  // listening: connections that nobody has accepted
    uint32_t backlog = 0;  // listening: what listen() was given
    uint8_t shut = 0;      // 1: for reading, 2: for writing
};
UnixFacts ask_unix(uint64_t inode);

}  // namespace fermata::split::process::descriptors
