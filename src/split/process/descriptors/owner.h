// The receiver of a descriptor's signals (F_SETOWN, F_SETSIG).
#pragma once

#include "split/process/descriptors/operations.h"

namespace fermata::split::process::descriptors {

void capture_owner(const Entry& entry, Json& one, Lines& warnings);
void restore_owner(int fd, const Json& one);

}  // namespace fermata::split::process::descriptors
