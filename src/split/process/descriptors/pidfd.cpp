// Descriptors of this process itself (pidfd).
#include <fcntl.h>

#include <cerrno>

#include "split/process/descriptors/operations.h"
#include "split/threads/raw.h"

namespace fermata::split::process::descriptors {
namespace {

// (Linux 6.9 made them files of a file system of their own.)
bool is(const Entry& entry) {
    return (entry.is_anonymous("[pidfd]") || entry.link.starts_with("pidfd:")) &&
           field(entry.info, "Pid") == std::to_string(raw::getpid());
}

Json capture(Capture&, const Entry&) { return Json::object(); }

Fd make(Restore&, const Description& one) {
    long fd = raw::call(SYS_pidfd_open, raw::getpid(), one.flags & O_NONBLOCK);
    if (fd < 0) errno = static_cast<int>(-fd);
    return Fd(fd < 0 ? -1 : static_cast<int>(fd));
}

}  // namespace

const Operations kPidfd = {.kind = Kind::pidfd, .is = is, .capture = capture, .make = make};

}  // namespace fermata::split::process::descriptors
