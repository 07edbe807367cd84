// Content that no mapping holds: [[offset, bytes], …].
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/page.h"
#include "base/range.h"

namespace fermata::split::shared {

// Data of these parts of a file, and back into one. All of it, or fermata::Error: `what` names it there.
nlohmann::json read_extents(int fd, const std::vector<Range>& parts, const std::string& what);
void write_extents(int fd, const nlohmann::json& extents, const std::string& what);
// Pages of memory that are not all zero; offsets from `at`.
nlohmann::json copy_extents(const void* at, uint64_t size);
void put_extents(void* at, uint64_t size, const nlohmann::json& extents);

}  // namespace fermata::split::shared
