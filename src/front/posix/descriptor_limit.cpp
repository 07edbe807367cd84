// The limit of open files as the program knows it: numbers from lower_descriptor_base() on are the lower
// half's, so that one is the hard limit. The kernel's own stays as high as it is, since the lower half needs
// it; the soft one is the program's, and what makes the kernel refuse.
#include <errno.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>

#include "front/core/ids.h"
#include "front/core/sys.h"
#include "front/posix/next.h"

namespace fermata::front::posix {
namespace {

Next<int(__rlimit_resource_t, rlimit*)> next_getrlimit{"getrlimit"};
Next<int(__rlimit_resource_t, const rlimit*)> next_setrlimit{"setrlimit"};
Next<int(pid_t, __rlimit_resource_t, const rlimit*, rlimit*)> next_prlimit{"prlimit"};

// As the program has lowered it.
std::atomic<rlim_t> lowered{RLIM_INFINITY};

// Children have the kernel's: there is no lower half in them.
bool ours(int resource) {
    const fermata::split::Bridge* b = bridge();
    return resource == RLIMIT_NOFILE && b != nullptr && b->lower_owned != nullptr && b->process == real_pid();
}

rlimit told(rlimit limit) {
    limit.rlim_max = std::min({limit.rlim_max, static_cast<rlim_t>(bridge()->first_lower), lowered.load()});
    limit.rlim_cur = std::min(limit.rlim_cur, limit.rlim_max);
    return limit;
}

// As the kernel answers somebody without privileges.
int change(const rlimit* wanted, rlimit* old) {
    rlimit now{};
    fermata::sys(SYS_prlimit64, 0, RLIMIT_NOFILE, nullptr, &now);
    const rlimit before = told(now);
    if (wanted != nullptr) {
        const int error = wanted->rlim_cur > wanted->rlim_max  ? EINVAL
                          : wanted->rlim_max > before.rlim_max ? EPERM
                                                               : 0;
        if (error != 0) {
            errno = error;
            return -1;
        }
        const rlimit real{wanted->rlim_cur, now.rlim_max};
        fermata::sys(SYS_prlimit64, 0, RLIMIT_NOFILE, &real, nullptr);
        if (wanted->rlim_max < before.rlim_max) lowered = wanted->rlim_max;
    }
    if (old != nullptr) *old = before;
    return 0;
}

}  // namespace
}  // namespace fermata::front::posix

using namespace fermata::front;
using namespace fermata::front::posix;

FERMATA_INTERPOSE int getrlimit(__rlimit_resource_t resource, rlimit* limit) noexcept {
    const int result = next_getrlimit(resource, limit);
    if (result == 0 && ours(resource)) *limit = told(*limit);
    return result;
}
FERMATA_INTERPOSE int setrlimit(__rlimit_resource_t resource, const rlimit* limit) noexcept {
    if (!ours(resource)) return next_setrlimit(resource, limit);
    return change(limit, nullptr);
}
FERMATA_INTERPOSE int prlimit(pid_t pid, __rlimit_resource resource, const rlimit* limit,
                              rlimit* old) noexcept {
    const int real = real_id(pid);
    if (!ours(resource) || (real != 0 && real != real_pid())) return next_prlimit(real, resource, limit, old);
    return change(limit, old);
}

// The same structure on this machine.
FERMATA_INTERPOSE int getrlimit64(__rlimit_resource_t resource, rlimit64* limit) noexcept {
    return getrlimit(resource, reinterpret_cast<rlimit*>(limit));
}
FERMATA_INTERPOSE int setrlimit64(__rlimit_resource_t resource, const rlimit64* limit) noexcept {
    return setrlimit(resource, reinterpret_cast<const rlimit*>(limit));
}
FERMATA_INTERPOSE int prlimit64(pid_t pid, __rlimit_resource resource, const rlimit64* limit,
                                rlimit64* old) noexcept {
    return prlimit(pid, resource, reinterpret_cast<const rlimit*>(limit), reinterpret_cast<rlimit*>(old));
}
