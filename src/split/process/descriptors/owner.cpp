#include "split/process/descriptors/owner.h"

#include <fcntl.h>

#include "split/threads/raw.h"
#include "split/threads/records.h"

namespace fermata::split::process::descriptors {

void capture_owner(const Entry& entry, Json& one, Lines& warnings) {
    f_owner_ex owner = {};
    if (fcntl(entry.fd, F_GETOWN_EX, &owner) != 0 || owner.pid == 0) return;
    bool process = owner.type == F_OWNER_PID && owner.pid == raw::getpid();
    bool thread = owner.type == F_OWNER_TID &&
                  !read_proc("/proc/self/task/" + std::to_string(owner.pid) + "/comm").empty();
    if (process || thread) {
        one["owner_signal"] = fcntl(entry.fd, F_GETSIG);
        one["owner_thread"] = thread ? owner.pid : 0;
    } else {
        warnings.push_back(entry.who() +
                           ": its owner (F_SETOWN) is another process or group: after a restart it has none");
    }
}

void restore_owner(int fd, const Json& one) {
    if (!one.contains("owner_signal")) return;
    int thread = one.value("owner_thread", 0);
    f_owner_ex owner = {F_OWNER_PID, raw::getpid()};
    if (thread != 0) owner = {F_OWNER_TID, threads::new_tid(thread)};
    fcntl(fd, F_SETOWN_EX, &owner);
    fcntl(fd, F_SETSIG, one.at("owner_signal").get<int>());
}

}  // namespace fermata::split::process::descriptors
