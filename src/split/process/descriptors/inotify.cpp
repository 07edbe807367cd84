// Watches of files (inotify): the descriptor comes back, its watches do not.
#include <fcntl.h>
#include <sys/inotify.h>

#include "split/process/descriptors/operations.h"

namespace fermata::split::process::descriptors {
namespace {

bool is(const Entry& entry) { return entry.is_anonymous("inotify"); }

Json capture(Capture& capture, const Entry& entry) {
    if (entry.info.find("inotify wd:") != std::string::npos)
        capture.warnings.push_back(entry.who() +
                                   ": inotify watches are not saved: after a restart no events come");
    return Json::object();
}

Fd make(Restore&, const Description& one) { return Fd(inotify_init1(IN_CLOEXEC | (one.flags & O_NONBLOCK))); }

}  // namespace

const Operations kInotify = {.kind = Kind::inotify, .is = is, .capture = capture, .make = make};

}  // namespace fermata::split::process::descriptors
