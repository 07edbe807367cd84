// A process that becomes the copy of a rank on another node: it has come from an image of the rank, made for
// this, and follows the rank by a stream that the node daemons carry; alone in its library's world.
#pragma once

#include <memory>

#include "lower/load_image.h"
#include "lower/mpi_start.h"
#include "tree/agent_link.h"

namespace fermata::lower {

WantedImage image_of_copy(const tree::AgentConfig& config, image::KeyPointer key);
// The phases of its main thread; continues the program as the copy. Throws fermata::Error; `link` is null
// when the agent has it by then. `facts`: of the rank.
[[noreturn]] void continue_as_copy(tree::AgentConfig& config, const MpiFacts& facts, image::KeyPointer key,
                                   std::unique_ptr<tree::AgentLink>& link);

}  // namespace fermata::lower
