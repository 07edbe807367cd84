// The launcher's 0, 1 and 2 (parts.h has what others need of them).
#pragma once

namespace fermata::split::process::descriptors {

// Is this number one of our own duplicates of them?
bool is_kept_inherited(int fd);

}  // namespace fermata::split::process::descriptors
