// Options of sockets, as one JSON value.
#pragma once

#include <string>

#include "split/process/parts.h"

namespace fermata::split::process::descriptors {

Json capture_options(int fd, int domain, int type, int protocol, Lines& warnings);
// An option that cannot be set as it was is a warning; `who` names the descriptor.
void restore_options(int fd, const Json& saved, const std::string& who, Lines& warnings);

// Multicast groups (multicast.cpp).
Json capture_groups(int fd, int domain, Lines& warnings);
void restore_groups(int fd, const Json& joined, const std::string& who, Lines& warnings);

}  // namespace fermata::split::process::descriptors
