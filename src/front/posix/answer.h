// A system call's result as libc's functions give it.
#pragma once

#include <errno.h>

#include "front/core/sys.h"

namespace fermata::front::posix {

inline long answer(long result) noexcept {
    if (!failed(result)) return result;
    errno = static_cast<int>(-result);
    return -1;
}

}  // namespace fermata::front::posix
