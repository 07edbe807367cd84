// Messages of the tree as the agent's table of stages knows them.
#pragma once

#include <cstdint>
#include <optional>

#include "lower/agent_stages.h"
#include "wire/message.h"

namespace fermata::lower {

// Returns the event that a message is, where it is one.
std::optional<Event> event_of(const wire::Message& message);
// Returns the epoch of the checkpoint that the message belongs to, where only a rank that takes part in it
// may hear it.
std::optional<uint32_t> epoch_of(const wire::Message& message);

}  // namespace fermata::lower
