// The kernel gives the lowest free number, so the low ones are kept busy while MPI starts; later the lower
// half's descriptors are moved up one by one. The application keeps the soft limit it was started with: it is
// raised only for the few system calls that make a number above it (the kernel looks at the limit only then).
#include "split/fds/descriptors.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <algorithm>
#include <bitset>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "split/address/raw.h"
#include "split/fds/links.h"

namespace fermata::split {
namespace {

// The kernel's table of descriptors is as long as the highest number in use, rounded up to a power of two:
// for 65536 of them 0.5 MiB. A fork copies it (0.15 ms for 32768), and occupying them all takes 10 ms.
constexpr rlim_t kFewestForLower = 1024;
constexpr rlim_t kMostForUpper = 65536 - kFewestForLower;
constexpr rlim_t kWanted = 131072;

int base = 512;
// filling: begin_descriptors() keeps all low numbers busy, so that nothing has to be moved. Before main,
// libraries of the lower half open files already (UCX its log): moved as afterwards, or they would count as
// the program's.
enum class Phase { before_main, filling, moving } phase;
rlim_t raised_limit;  // while the lower half makes descriptors
SpinLock lock;
int raised;  // nesting of RaisedLimit over all threads
rlimit application_limit;
std::bitset<kMostForUpper> occupied;
constexpr int kOwned = kWanted;
uint64_t owned[kOwned / 64];

void note_owned(int fd) noexcept {
    const int at = fd - base;
    if (at >= 0 && at < kOwned) __atomic_fetch_or(&owned[at / 64], 1ull << at % 64, __ATOMIC_RELAXED);
}

std::vector<LauncherChannel> channels;

// Makes numbers below `up_to` possible, by the hard limit as well where that is allowed.
void raise(rlimit limit, rlim_t up_to) noexcept {
    rlimit higher{std::max(limit.rlim_cur, up_to), std::max(limit.rlim_max, up_to)};
    if (!failed(sys(SYS_prlimit64, 0, RLIMIT_NOFILE, &higher, nullptr))) return;
    limit.rlim_cur = std::min(higher.rlim_cur, limit.rlim_max);
    sys(SYS_prlimit64, 0, RLIMIT_NOFILE, &limit, nullptr);
}

// Root may have numbers above the hard limit: the program keeps all of its own.
bool may_go_above(const rlimit& limit) noexcept {
    rlimit higher = limit;
    higher.rlim_max += kFewestForLower;
    return limit.rlim_max <= kMostForUpper &&
           !failed(sys(SYS_prlimit64, 0, RLIMIT_NOFILE, &higher, nullptr)) &&
           !failed(sys(SYS_prlimit64, 0, RLIMIT_NOFILE, &limit, nullptr));
}

// False: too few.
bool choose_base(const rlimit& limit) noexcept {
    const rlim_t hard = limit.rlim_max;
    rlim_t room = hard / 4 * 3;  // at least a quarter of the table for the lower half
    if (room < 256) return false;
    if (hard > kFewestForLower * 2) room = std::max(room, hard - kFewestForLower);
    const bool above = may_go_above(limit);
    base = int(std::min(kMostForUpper, above ? hard : room));
    raised_limit = std::min(above ? hard + kFewestForLower : hard, std::max(kWanted, limit.rlim_cur));
    return true;
}

// Hydra and Slurm's PMI-1 hand an open descriptor over by number: it is MPI's, not the application's.
void move_launcher_channel() {
    const char* text = std::getenv("PMI_FD");
    if (!text || !*text) return;
    char* end;
    long fd = std::strtol(text, &end, 10);
    if (*end || fd < 3 || fd >= base) return;
    long up = sys(SYS_fcntl, fd, F_DUPFD_CLOEXEC, base);
    if (failed(up)) return;
    sys(SYS_close, fd);
    setenv("PMI_FD", std::to_string(up).c_str(), 1);
}

}  // namespace

RaisedLimit::RaisedLimit() noexcept {
    lock.lock();
    if (raised++ == 0) {
        sys(SYS_prlimit64, 0, RLIMIT_NOFILE, nullptr, &application_limit);  // it may have changed it
        raise(application_limit, raised_limit);
    }
    lock.unlock();
}

RaisedLimit::~RaisedLimit() {
    lock.lock();
    if (--raised == 0) sys(SYS_prlimit64, 0, RLIMIT_NOFILE, &application_limit, nullptr);
    lock.unlock();
}

void begin_descriptors() {
    rlimit limit{};
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) fail_errno("cannot read the limit on open files");
    application_limit = limit;
    if (!choose_base(limit))
        fail(
            "the hard limit on open files is {}: MPI and the program need more; run `ulimit -Hn 1024` or "
            "higher",
            limit.rlim_max);
    phase = Phase::filling;
    raise(limit, raised_limit);
    move_launcher_channel();

    long null = sys(SYS_openat, AT_FDCWD, "/dev/null", O_RDWR | O_CLOEXEC);
    if (failed(null)) fail("cannot open /dev/null: {}", std::strerror(int(-null)));
    long top = sys(SYS_fcntl, null, F_DUPFD_CLOEXEC, base);  // our own handle, above the line
    sys(SYS_close, null);
    if (failed(top)) fail("cannot use descriptor {}: {}", base, std::strerror(int(-top)));
    for (;;) {
        long fd = sys(SYS_fcntl, top, F_DUPFD_CLOEXEC, 3);
        if (failed(fd)) break;
        if (fd >= base) {
            sys(SYS_close, fd);
            break;
        }
        occupied.set(size_t(fd));
    }
    // Every number below the line is now either ours or was open before.
    for (int fd = 3; fd < base; ++fd) {
        struct stat status {};
        if (occupied.test(size_t(fd)) || fstat(fd, &status) != 0) continue;
        if (S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode))
            channels.push_back({fd, status.st_dev, status.st_ino});
    }
    sys(SYS_close, top);
}

void end_descriptors() {
    for (int fd = 3; fd < base; ++fd) {
        int first = fd;
        while (fd < base && occupied.test(size_t(fd))) ++fd;
        if (first == fd || !failed(sys(SYS_close_range, first, fd - 1, 0))) continue;
        for (int k = first; k < fd; ++k) sys(SYS_close, k);  // before Linux 5.9
    }
    occupied.reset();
    phase = Phase::moving;
    for (const DescriptorLink& link : descriptor_links()) note_owned(link.fd);
    application_limit.rlim_cur = std::min(application_limit.rlim_cur, rlim_t(base));
    setrlimit(RLIMIT_NOFILE, &application_limit);
}

bool launcher_channel(int fd) {
    for (const LauncherChannel& channel : channels) {
        struct stat status {};
        if (channel.fd == fd)
            return fstat(fd, &status) == 0 && status.st_dev == channel.device &&
                   status.st_ino == channel.inode;
    }
    return false;
}

std::vector<LauncherChannel> launcher_channels() { return channels; }
void resume_launcher_channels(std::vector<LauncherChannel> noted) { channels = std::move(noted); }

int lower_descriptor_base() { return base; }

int raise_descriptor(int fd) noexcept {
    if (fd < 0) return fd;
    if (phase == Phase::before_main) {
        rlimit limit{};
        sys(SYS_prlimit64, 0, RLIMIT_NOFILE, nullptr, &limit);
        if (!choose_base(limit)) return fd;  // begin_descriptors() says it
    }
    if (fd >= base) {
        note_owned(fd);
        return fd;
    }
    if (phase == Phase::filling) return fd;
    RaisedLimit scope;
    long up = sys(SYS_fcntl, fd, F_DUPFD_CLOEXEC, base);
    if (failed(up)) return fd;
    sys(SYS_close, fd);
    note_owned(int(up));
    return int(up);
}

OwnedDescriptors lower_descriptors() { return {owned, kOwned}; }

}  // namespace fermata::split
