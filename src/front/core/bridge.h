// bridge() is the front's way to the table that the lower half gave it (split/bridge.h). Never keep the
// pointer over a stop point: a restart replaces it.
#pragma once

#include "front/core/front.h"
#include "split/bridge.h"

namespace fermata::front {

inline split::Bridge* bridge() noexcept { return fermata_upper.bridge; }
// The library below now; another one after a restart, perhaps.
inline bool on_open_mpi() noexcept { return __builtin_strcmp(bridge()->mpi_library, "openmpi") == 0; }

}  // namespace fermata::front
