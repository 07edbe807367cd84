// A process that its rank has left, and that stays as the rank's copy: what it has open becomes its own, so
// that nothing it does is seen, until it has the rank's place.
#pragma once

#include <memory>
#include <string>

#include "base/rank.h"
#include "lower/services.h"
#include "tree/agent_link.h"

namespace fermata::lower {

// Why this process cannot stay, as a line; "" = it can.
std::string why_not_stay();
// Its own files from now on; says so to the node daemon, over a connection of its own.
std::unique_ptr<tree::AgentLink> stay_behind(const tree::AgentConfig& config, Rank rank);
// Follows a rank now.
bool is_copy();
// A shadow of a file that the copy's program opens (written_files.h), or the file itself, once the copy has
// the rank's place; -1: there is none.
int shadow_or_none(const WantedShadow& wanted);
// Takes the rank's place: what it writes from now on is the rank's.
void take_place(tree::AgentLink& link);

}  // namespace fermata::lower
