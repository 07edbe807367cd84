#include "split/process/descriptors/locks.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "split/process/descriptors/saved.h"

namespace fermata::split::process::descriptors {
namespace {

int take(int fd, const Lock& lock) {
    if (lock.kind == "FLOCK") return flock(fd, (lock.exclusive ? LOCK_EX : LOCK_SH) | LOCK_NB);
    if (lock.kind == "LEASE") return fcntl(fd, F_SETLEASE, lock.exclusive ? F_WRLCK : F_RDLCK);
    struct flock range = {};
    range.l_type = lock.exclusive ? F_WRLCK : F_RDLCK;
    range.l_whence = SEEK_SET;
    range.l_start = lock.start;
    range.l_len = lock.length;
    return fcntl(fd, lock.kind == "OFDLCK" ? F_OFD_SETLK : F_SETLK, &range);
}

}  // namespace

// "lock:\t1: POSIX  ADVISORY  WRITE 4022 fd:01:1234 0 EOF" lines of fdinfo.
Json capture_locks(const std::string& info) {
    Json locks = Json::array();
    for (size_t at = info.find("lock:"); at != std::string::npos; at = info.find("lock:", at + 1)) {
        char kind[16] = {}, access[16] = {}, end[32] = {};
        long long start = 0;
        if (std::sscanf(info.c_str() + at, "lock:\t%*d: %15s %*s %15s %*d %*s %lld %31s", kind, access,
                        &start, end) != 4)
            continue;
        long long length = std::strcmp(end, "EOF") == 0 ? 0 : std::atoll(end) - start + 1;
        locks.push_back(Lock{kind, std::strcmp(access, "WRITE") == 0, start, length});
    }
    return locks;
}

void restore_locks(const Description& one, Lines& warnings) {
    for (const Json& lock : one.saved.at("locks"))
        if (take(one.number, lock.get<Lock>()) != 0)
            warnings.push_back(one.who + ": the lock on " + one.saved.value("path", "a file") +
                               " cannot be had (held by somebody else?)");
}

}  // namespace fermata::split::process::descriptors
