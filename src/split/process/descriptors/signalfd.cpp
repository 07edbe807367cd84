// Signals as descriptors (signalfd). Pending signals are the process's (signals.cpp).
#include <fcntl.h>

#include <cerrno>
#include <cstdlib>

#include "split/process/descriptors/operations.h"
#include "split/threads/raw.h"

namespace fermata::split::process::descriptors {
namespace {

bool is(const Entry& entry) { return entry.is_anonymous("[signalfd]"); }

Json capture(Capture&, const Entry& entry) {
    return {{"mask", std::strtoull(field(entry.info, "sigmask").c_str(), nullptr, 16)}};
}

Fd make(Restore&, const Description& one) {
    auto mask = one.saved.at("mask").get<uint64_t>();
    long fd =
        raw::call(SYS_signalfd4, -1, raw::word(&mask), sizeof mask, O_CLOEXEC | (one.flags & O_NONBLOCK));
    if (fd < 0) errno = static_cast<int>(-fd);
    return Fd(fd < 0 ? -1 : static_cast<int>(fd));
}

}  // namespace

const Operations kSignalfd = {.kind = Kind::signalfd, .is = is, .capture = capture, .make = make};

}  // namespace fermata::split::process::descriptors
