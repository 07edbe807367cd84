// This header has the work of a node daemon on parity, in a thread of its own: it makes this node's, and
// rebuilds images out of that of others. Everything waits; what fails throws Error.
#pragma once

#include <cstdint>
#include <functional>

#include "erasure/encode.h"
#include "noded/peer_source.h"
#include "wire/message.h"

namespace fermata::noded {

// This node's parity in a group: says first what it has, and waits until the others have said so. `between`
// as in erasure/encode.h. Gives the bytes of parity.
uint64_t encode(const OwnNode& own, const wire::PeerGroup& group, const erasure::Between& between);

// Lists the files of parity of these generations on a node, as the root wants to know them.
std::vector<wire::PeerGroup> parity_in(const OwnNode& own, const std::vector<Generation>& generations);

// Adds what of this node's parity of these generations is damaged; every byte is compared.
void add_parity_flaws(const OwnNode& own, const std::vector<Generation>& generations,
                      std::vector<wire::Flaw>& flaws);

// The images of this repair, and what belongs to them. One of `groups` has each.
void rebuild(const OwnNode& own, const wire::Repair& repair, const std::vector<wire::PeerGroup>& groups,
             const erasure::Between& between);

}  // namespace fermata::noded
