#include "split/fds/inherited.h"

#include <fcntl.h>
#include <linux/kcmp.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/invariant.h"
#include "base/sys.h"
#include "split/fds/descriptors.h"

namespace fermata::split {
namespace {

int g_kept[3] = {-1, -1, -1};

}  // namespace

void keep_inherited_descriptors() {
    for (int i = 0; i < 3; ++i)
        if (g_kept[i] < 0) g_kept[i] = raised(static_cast<int>(sys(SYS_dup, i)), lower_descriptor_base());
}

void resume_inherited_descriptor(int number, int duplicate) {
    always(number >= 0 && number < 3, "a standard stream that is none");
    g_kept[number] = duplicate;
}

int inherited_descriptor(int number) {
    always(number >= 0 && number < 3, "a standard stream that is none");
    return g_kept[number];
}

int raised(int fd, int base) {
    if (fd < 0 || fd >= base) return fd;
    // The partition's own way: it lifts the soft limit meanwhile.
    int high = raise_descriptor(fd);
    if (high >= base) return high;
    high = static_cast<int>(sys(SYS_fcntl, fd, F_DUPFD_CLOEXEC, base));
    sys(SYS_close, fd);
    return high < 0 ? -1 : high;
}

bool same_description(int a, int b) {
    int pid = getpid();
    long answer = sys(SYS_kcmp, pid, pid, KCMP_FILE, a, b);
    if (answer >= 0) return answer == 0;
    // No kcmp (CONFIG_KCMP off, seccomp): the same inode, and an offset that moves in both.
    struct stat first, second;
    if (fstat(a, &first) != 0 || fstat(b, &second) != 0) return false;
    if (first.st_dev != second.st_dev || first.st_ino != second.st_ino ||
        fcntl(a, F_GETFL) != fcntl(b, F_GETFL))
        return false;
    off_t at = lseek(a, 0, SEEK_CUR);
    if (at < 0) return true;  // no offset to tell by: the inode has to do
    off_t before = lseek(b, 0, SEEK_CUR);
    lseek(a, at + 1, SEEK_SET);
    bool moved = before == at && lseek(b, 0, SEEK_CUR) == at + 1;
    lseek(a, at, SEEK_SET);
    return moved;
}

}  // namespace fermata::split
