// Access to the lower half. Never keep the pointer over a stop point: a restart replaces it.
#pragma once

#include "front/core/front.h"
#include "split/bridge.h"

namespace fermata::front {

inline split::Bridge* bridge() noexcept { return fermata_upper.bridge; }

}  // namespace fermata::front
