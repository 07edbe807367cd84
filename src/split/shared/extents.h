// Content that no mapping holds: [[offset, bytes], …].
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "split/address/range.h"

namespace fermata::split::shared {

// Data of these parts of a file.
nlohmann::json read_extents(int fd, const std::vector<Range>& parts);
void write_extents(int fd, const nlohmann::json& extents);
// Pages of memory that are not all zero; offsets from `at`.
nlohmann::json copy_extents(const void* at, uint64_t size);
void put_extents(void* at, uint64_t size, const nlohmann::json& extents);

}  // namespace fermata::split::shared
