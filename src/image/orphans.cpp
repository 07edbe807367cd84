// The keeper uses system calls only: it shares libc's thread pointer with a thread that may have died with
// any lock held.
#include "image/orphans.h"

#include <linux/futex.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>

#include "base/error.h"
#include "base/sys.h"
#include "image/image.h"

namespace fermata::image {
namespace {

// Newer than the headers of Debian 12.
struct Poison {
    uffdio_range range;
    uint64_t mode;
    int64_t updated;
};
constexpr unsigned long kPoison = _IOWR(0xAA, 0x08, Poison);
// Just below the end of every address space: never watched.
constexpr uint64_t kNowhere = 0x7fffffffe000;

long poison(int faults, uint64_t page) noexcept {
    Poison one{{page, kPage}, 0, 0};
    return sys(SYS_ioctl, faults, kPoison, &one);
}

bool ended(int faults) noexcept { return poison(faults, kNowhere) == -ESRCH; }

constexpr char kSaid[] =
    "fermata: the program's process ended while memory of its children was still being read: a child that "
    "touches what is missing gets SIGBUS\n";

}  // namespace

void Orphans::end() noexcept {
    if (keeper_ <= 0) return;
    done_ = 1;
    sys(SYS_futex, &done_, FUTEX_WAKE, 1);
    // No SIGCHLD, and the program's own waits do not see it.
    while (sys(SYS_wait4, keeper_, nullptr, __WALL, nullptr) == -EINTR) {
    }
    keeper_ = 0;
}

bool Orphans::take(int faults) noexcept {
    for (auto& slot : faults_) {
        int none = 0;
        if (slot.compare_exchange_strong(none, faults + 1)) return true;
    }
    return false;
}

void Orphans::add(int faults) {
    if (!take(faults)) fail("the program has made {} children before all of its memory was read", kMost);
    if (keeper_) return;
    process_ = ::getpid();
    thread_ = static_cast<int>(::syscall(SYS_gettid));
    stack_.resize(64 << 10);
    char* top = stack_.data() + (stack_.size() & ~size_t{15});
    keeper_ = ::clone(keep, top - reinterpret_cast<uint64_t>(top) % 16, CLONE_VM | CLONE_FILES, this);
    if (keeper_ < 0) fail_errno("cannot make a process that looks after the program's children");
}

void Orphans::remove(int faults) noexcept {
    for (auto& slot : faults_) {
        int held = faults + 1;
        if (slot.compare_exchange_strong(held, 0)) return;
    }
}

int Orphans::keep(void* self) noexcept {
    // Launchers kill groups of processes.
    sys(SYS_setsid);
    static_cast<Orphans*>(self)->keep_until_the_end();
    return 0;
}

void Orphans::keep_until_the_end() noexcept {
    while (sys(SYS_tgkill, process_, thread_, 0) == 0) {
        if (done_) return;
        struct timespec pause {
            0, 20'000'000
        };
        sys(SYS_futex, &done_, FUTEX_WAIT, 0, &pause);
    }
    if (done_) return;
    bool any = false;
    for (auto& slot : faults_)
        if (int fd = slot - 1; fd >= 0 && !ended(fd)) any = true;
    if (any) sys(SYS_write, STDERR_FILENO, kSaid, sizeof kSaid - 1);
    // The launcher waits for the end of its pipes. Mappings and descriptors of the program go with the first
    // of them.
    for (int fd = 0, last = -1;; last = fd) {  // all between those that we keep
        fd = INT32_MAX;
        for (auto& slot : faults_)
            if (slot - 1 > last && slot - 1 < fd) fd = slot - 1;
        if (last + 1 < fd) sys(SYS_close_range, last + 1, fd - 1, 0);
        if (fd == INT32_MAX) break;
    }
    for (Range range : memory_) sys(SYS_munmap, range.begin(), range.size());
    for (bool left = true; left;) {
        left = false;
        for (auto& slot : faults_) {
            int fd = slot - 1;
            if (fd < 0) continue;
            uffd_msg messages[16];
            long n = sys(SYS_read, fd, messages, sizeof messages);
            for (long i = 0; i < n / static_cast<long>(sizeof messages[0]); ++i) {
                if (messages[i].event == UFFD_EVENT_FORK) {
                    take(static_cast<int>(messages[i].arg.fork.ufd));
                } else if (messages[i].event == UFFD_EVENT_PAGEFAULT) {
                    uint64_t page = messages[i].arg.pagefault.address & ~(kPage - 1);
                    uffdio_range all{page, kPage};
                    // Filled after all, or something has changed meanwhile: whoever waits looks again.
                    if (poison(fd, page) != 0) sys(SYS_ioctl, fd, UFFDIO_WAKE, &all);
                }
            }
            if (n <= 0 && ended(fd)) {
                slot = 0;
                sys(SYS_close, fd);
            } else {
                left = true;
            }
        }
        struct timespec pause {
            0, 5'000'000
        };
        if (left) sys(SYS_nanosleep, &pause, nullptr);
    }
}

}  // namespace fermata::image
