// Devices: opened again by their name; what they hold is not saved.
#include "split/process/descriptors/device.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/error.h"
#include "split/devices/kinds.h"
#include "split/process/descriptors/restore.h"

namespace fermata::split::process::descriptors {
namespace {

bool is(const Entry& entry) { return entry.is(S_IFCHR) || entry.is(S_IFBLK); }

Json capture(Capture& capture, const Entry& entry) {
    if (std::string why = devices::kind_of(entry.link).refuse_open(entry.link); !why.empty())
        fail("{} is {}", entry.who(), why);
    if (!is_everywhere(entry.link))
        capture.warnings.push_back(entry.who() + ": device " + entry.link +
                                   " is opened again at a restart, its state is not saved");
    return {{"path", entry.link}};
}

// Without waiting for it, say for a terminal's carrier.
files::Opened open_device(const std::string& path, int flags) {
    files::Place place(path);
    mode_t kind = place.is(S_IFBLK) ? S_IFBLK : S_IFCHR;
    if (!place.is(kind)) return files::refused(place, kind, errno);
    Fd fd = place.open(flags | O_NONBLOCK);
    if (!fd) return files::refused(place, kind, errno);
    if ((flags & (O_NONBLOCK | O_PATH)) == 0)
        fcntl(fd.get(), F_SETFL, fcntl(fd.get(), F_GETFL) & ~O_NONBLOCK);
    return {std::move(fd), 0, {}};
}

Fd make(Restore& restore, const Description& one) {
    auto path = one.saved.at("path").get<std::string>();
    int flags = reopen_flags(one.flags);
    files::Opened opened = open_device(path, flags);
    if (opened) return std::move(opened.fd);
    restore.warnings.push_back(path + " (" + one.who + ") cannot be opened here: " + opened.why +
                               ": it is /dev/null now");
    return Fd(open("/dev/null", flags));
}

}  // namespace

bool is_everywhere(const std::string& path) {
    constexpr std::string_view kKnown[] = {"/dev/null",   "/dev/zero",    "/dev/full",
                                           "/dev/random", "/dev/urandom", "/dev/tty"};
    return std::find(std::begin(kKnown), std::end(kKnown), path) != std::end(kKnown);
}

const Operations kDevice = {
    .kind = Kind::device, .is = is, .capture = capture, .make = make, .has_offset = true};

}  // namespace fermata::split::process::descriptors
