// Descriptors that came from the launcher: duplicates are kept, so that kcmp can tell what is still one of
// them; after a restart they are the new launcher's.
#include "split/process/descriptors/inherited.h"

#include <fcntl.h>
#include <fmt/core.h>
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
    const int number = one.saved.at("number");
    if (number < 0 || number > 2)
        throw Refused{"the image's process state is damaged: no such standard stream"};
    const int from = inherited_descriptor(number);
    return Fd(from < 0 ? -1 : static_cast<int>(raw::call(SYS_dup, from)));
}

}  // namespace

const Operations kInherited = {
    .kind = Kind::inherited, .is = is, .capture = capture, .make = make, .may_be_missing = true};

int given_by_launcher(const Entry& entry) {
    for (int i : {entry.fd, 1, 2, 0}) {
        struct stat given;
        if (i > 2 || inherited_descriptor(i) < 0 || fstat(inherited_descriptor(i), &given) != 0) continue;
        if (given.st_dev != entry.status.st_dev || given.st_ino != entry.status.st_ino) continue;
        bool redirected =
            S_ISREG(given.st_mode) || (i > 0 && S_ISCHR(given.st_mode) && is_everywhere(entry.link));
        if (!redirected && same_description(entry.fd, inherited_descriptor(i))) return i;
    }
    return -1;
}

bool is_kept_inherited(int fd) {
    for (int i = 0; i < 3; ++i)
        if (fd == inherited_descriptor(i)) return true;
    return false;
}

}  // namespace descriptors

}  // namespace fermata::split::process
