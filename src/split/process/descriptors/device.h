// Devices that are the same on every node.
#pragma once

#include <string>

namespace fermata::split::process::descriptors {

// Such a device has no state: /dev/null and the like.
bool is_everywhere(const std::string& path);

}  // namespace fermata::split::process::descriptors
