// Descriptors that came from the launcher: duplicates are kept, so that kcmp can tell what is still one of
// them; after a restart they are the new launcher's.
#include "split/process/descriptors/inherited.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <iterator>

#include "split/fds/descriptors.h"
#include "split/process/descriptors/device.h"
#include "split/process/descriptors/operations.h"
#include "split/threads/raw.h"

namespace fermata::split::process {
namespace descriptors {
namespace {

int g_inherited[3] = {-1, -1, -1};

bool is(const Entry& entry) { return given_by_launcher(entry) >= 0; }

Json capture(Capture& capture, const Entry& entry) {
    int number = given_by_launcher(entry), unread = 0;
    if (number == 0 && entry.fd == 0 && ioctl(entry.fd, FIONREAD, &unread) == 0 && unread > 0)
        capture.warnings.push_back(
            fmt::format("{} bytes of standard input that the program has not read yet are not in the image: "
                        "give input as a file (fermata run … < FILE)",
                        unread));
    return {{"number", number}};
}

Fd make(Restore&, const Description& one) {
    int from = inherited_descriptor(one.saved.at("number"));
    return Fd(from < 0 ? -1 : static_cast<int>(raw::call(SYS_dup, from)));
}

}  // namespace

const Operations kInherited = {
    .kind = Kind::inherited, .is = is, .capture = capture, .make = make, .may_be_missing = true};

int given_by_launcher(const Entry& entry) {
    for (int i : {entry.fd, 1, 2, 0}) {
        struct stat given;
        if (i > 2 || g_inherited[i] < 0 || fstat(g_inherited[i], &given) != 0) continue;
        if (given.st_dev != entry.status.st_dev || given.st_ino != entry.status.st_ino) continue;
        bool redirected =
            S_ISREG(given.st_mode) || (i > 0 && S_ISCHR(given.st_mode) && is_everywhere(entry.link));
        if (!redirected && same_description(entry.fd, g_inherited[i])) return i;
    }
    return -1;
}

bool is_kept_inherited(int fd) {
    return std::find(std::begin(g_inherited), std::end(g_inherited), fd) != std::end(g_inherited);
}

}  // namespace descriptors

int raised(int fd, int base) {
    if (fd < 0 || fd >= base) return fd;
    // The partition's own way: it lifts the soft limit meanwhile.
    int high = raise_descriptor(fd);
    if (high >= base) return high;
    high = static_cast<int>(raw::call(SYS_fcntl, fd, F_DUPFD_CLOEXEC, base));
    raw::call(SYS_close, fd);
    return high < 0 ? -1 : high;
}

void keep_inherited_descriptors() {
    using descriptors::g_inherited;
    for (int i = 0; i < 3; ++i)
        if (g_inherited[i] < 0)
            g_inherited[i] = raised(static_cast<int>(raw::call(SYS_dup, i)), lower_descriptor_base());
}

int inherited_descriptor(int number) {
    if (number < 0 || number > 2)
        throw Refused{"the image's process state is damaged: no such standard stream"};
    return descriptors::g_inherited[number];
}

}  // namespace fermata::split::process
