// System V objects belong to the node and to no process: what a rank made (segments) or used last is taken
// for the job's. Segments have their own file (segments.h).
#pragma once

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "split/shared/objects.h"

namespace fermata::split::shared {

// Those of which the kernel says that this process used them last, and those of which it said so before.
// `not_ours`: segments that the lower half has attached.
std::vector<Use> used_system_v(const std::set<int>& not_ours);
// An object that is made here belongs to this rank.
void note_system_v(Kind kind, int id);

nlohmann::json describe_system_v(const Key& key, bool content, std::vector<std::string>& warnings);
// Values and messages of the image; the number of what is there still, or asked for. -1 = it could not be
// had, with a warning. Throws fermata::Error.
int make_system_v(Kind kind, const nlohmann::json& described, std::vector<std::string>& warnings);

}  // namespace fermata::split::shared
