#include "split/pages/write_protect.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>

#include <cstring>

#include "base/sys.h"

namespace fermata::split {
namespace {

struct FaultApi {
    uint64_t api, features, ioctls;
};
constexpr unsigned long kApi = _IOWR(0xAA, 0x3F, FaultApi);
constexpr uint64_t kApiNumber = 0xAA, kWriteProtectAsync = 1 << 15;

}  // namespace

int open_user_faults(uint64_t features, std::string& why) {
    // Opens a userfaultfd as unprivileged users may: nobody ever waits for an answer.
    long fd = sys(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);
    if (failed(fd)) {
        why = std::string("no userfaultfd: ") + std::strerror(static_cast<int>(-fd));
        return -1;
    }
    FaultApi api{kApiNumber, features, 0};
    if (!failed(sys(SYS_ioctl, fd, kApi, &api))) return static_cast<int>(fd);
    sys(SYS_close, fd);
    why = "no write protection through userfaultfd (Linux 5.7 has it)";
    return -1;
}

int open_write_protection(std::string& why) {
    int fd = open_user_faults(kWriteProtectAsync, why);
    if (fd < 0 && !why.starts_with("no userfaultfd"))
        why = "no asynchronous write protection (Linux 6.7 has it)";
    return fd;
}

}  // namespace fermata::split
