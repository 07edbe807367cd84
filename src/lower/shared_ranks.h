// Ranks speak with each other about what they share by other means than MPI (src/split/shared): all together
// before a save, and the ranks of one object during a restart. On the private world, whoever may use MPI.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "split/shared/registry.h"
#include "split/shared/roster.h"
#include "wire/message.h"

namespace fermata::lower {

// Lets all ranks know which rank has what. Every rank calls it; it is over when all have. Throws
// fermata::Error, after it has told the others.
std::unique_ptr<split::shared::Roster> exchange_uses(uint64_t private_world, Rank rank, int size);

// The same without the library, whose bytes the tree carries: this rank's list, and what those of all ranks
// say, in their order. They throw fermata::Error.
wire::Bytes own_uses();
std::unique_ptr<split::shared::Roster> roster_of(const std::vector<wire::Bytes>& all, Rank rank);

// For a restart. `node`: this one's name.
split::shared::Peers peers(uint64_t private_world, Rank rank, const std::string& node);

}  // namespace fermata::lower
