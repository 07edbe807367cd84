// Ranks tell each other at a restart which processes they are (split/ids/ids.h).
#pragma once

#include <cstdint>
#include <vector>

#include "split/ids/ids.h"

namespace fermata::lower {

// All ranks' words, by the number of the rank. Every rank calls it, on the private world, in the main thread
// before there is an agent. Throws fermata::Error.
std::vector<split::ids::RankProcess> exchange_processes(uint64_t private_world, int size,
                                                        const split::ids::RankProcess& mine);

}  // namespace fermata::lower
