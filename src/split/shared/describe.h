// Words of an image about shared objects, and lines of a checkpoint about them.
#pragma once

#include <string>
#include <vector>

#include "split/pages/table.h"
#include "split/shared/roster.h"

namespace fermata::split::shared {

// Blob `shared` of an image (docs/formats/image.md). The program stands. `limit`: its descriptors are below.
std::string describe(const MemoryTable& table, const std::map<uint64_t, Key>& objects, int limit,
                     std::vector<std::string>& warnings);

}  // namespace fermata::split::shared
