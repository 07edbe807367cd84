// Locks on files: advisory ones of both sorts, and leases.
#pragma once

#include "split/process/descriptors/operations.h"

namespace fermata::split::process::descriptors {

Json capture_locks(const std::string& info);
void restore_locks(const Description& one, Lines& warnings);

}  // namespace fermata::split::process::descriptors
