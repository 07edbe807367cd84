// This header reads what control groups leave of a machine's memory.
#pragma once

#include <cstdint>
#include <string>

namespace fermata {

// Returns how much memory all control groups above this process have room for, of version 2 or 1; UINT64_MAX:
// none has a limit. Cached files that are on their storage count as room: they go when it is wanted, and a
// group whose processes have read or written enough is always full of them. A `kept`-th part of each limit is
// left for others; 0: nothing.
uint64_t room_in_groups(uint64_t kept);

// The same, of groups named as in /proc/self/cgroup, with their files below `mounted`.
uint64_t room_in_groups(const std::string& groups, const std::string& mounted, uint64_t kept);

}  // namespace fermata
