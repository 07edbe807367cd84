// Write protection through userfaultfd, also asynchronous: what include/uapi/linux/userfaultfd.h of Linux 6.7
// has, and Debian 12's headers do not.
#pragma once

#include <sys/ioctl.h>

#include <cstdint>
#include <string>

namespace fermata::split {

struct FaultRegister {
    uint64_t start, length, mode, ioctls;
};
inline constexpr unsigned long kFaultRegister = _IOWR(0xAA, 0x00, FaultRegister);
inline constexpr uint64_t kModeWriteProtect = 1 << 1;

// A descriptor for asynchronous protection, and for `features`; -1 with the reason when this kernel has none.
int open_write_protection(std::string& why);
int open_user_faults(uint64_t features, std::string& why);

}  // namespace fermata::split
