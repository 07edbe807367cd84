// An errand is the order for one node to take images from another one, or from its own other medium.
#pragma once

#include <string>
#include <vector>

#include "level/choice.h"
#include "store/generation.h"
#include "wire/message.h"

namespace fermata::keeping {

// Names the image as its manifest has it.
level::ImageIs image_in(const store::ImageEntry& entry);

// `manifest`: of the last of `generations`; `addresses`: where the node of move.from is reached.
wire::Errand errand_of(const level::Move& move, const store::Manifest& manifest,
                       const std::vector<Generation>& generations, const std::string& addresses);

}  // namespace fermata::keeping
