// Placing says which host gets which ranks: block by block in the order of slots, as Open MPI's default is,
// or one after the other over the nodes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "launch/own/hosts.h"
#include "pmi/placement.h"

namespace fermata::launch::own {

struct Wishes {
    std::vector<Host> hosts;     // with their slots
    uint32_t ranks = 0;          // 0 = one a slot
    uint32_t per_node = 0;       // 0 = by slots
    bool by_node = false;        // in turn over the nodes
    bool oversubscribe = false;  // more ranks than slots are wanted
};

// Throws Error (exit code 2) when there are more ranks than slots that somebody has given, and nobody has
// said that this is meant.
pmi::Placement place(const Wishes& wishes);
uint32_t sum_of_slots(const std::vector<Host>& hosts);

}  // namespace fermata::launch::own
