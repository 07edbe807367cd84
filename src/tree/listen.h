// listen_tcp() opens a port for other nodes.
#pragma once

#include <cstdint>

#include "base/fd.h"

namespace fermata::tree {

// A port of the kernel's choice, which it writes into `port`. An IPv6 socket that also takes IPv4; plain IPv4
// where the kernel has no IPv6. Throws Error.
Fd listen_tcp(uint16_t& port);

}  // namespace fermata::tree
