// is_ending() says whether a process is on its way out, or has ended: a moment before it can be waited for,
// when its descriptors may be closed already.
#pragma once

#include <sys/types.h>

namespace fermata {

bool is_ending(pid_t pid);

}  // namespace fermata
