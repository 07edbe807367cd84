#include "lower/forked_writer.h"

#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>

#include "base/control_groups.h"
#include "base/error.h"
#include "base/proc_text.h"
#include "base/sys.h"
#include "base/text.h"
#include "split/fds/descriptors.h"

namespace fermata::lower {
namespace {

constexpr int kPidfd = 3;  // P_PIDFD of newer headers

// The child. Only system calls and the pump: other threads may have held any lock of libc when it was made.
[[noreturn]] void child(image::Writer& writer, long parent, const std::function<void()>& first) {
    sys(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL);
    if (sys(SYS_getppid) == parent) {
        // The launcher waits for the end of its pipes, peers for the end of their sockets.
        unsigned keep = static_cast<unsigned>(writer.descriptor());
        if (keep > 0) sys(SYS_close_range, 0u, keep - 1, 0u);
        sys(SYS_close_range, keep + 1, ~0u, 0u);
        struct rlimit none {
            0, 0
        };
        sys(SYS_prlimit64, 0, RLIMIT_CORE, &none, nullptr);
        first();
        writer.write_rest();
    }
    for (;;) sys(SYS_exit_group, 0);
}

uint64_t available_memory() {
    const uint64_t free =
        number_at_start(field(read_proc("/proc/meminfo"), "MemAvailable")).value_or(UINT64_MAX >> 10) << 10;
    return std::min(free, room_in_groups(0));
}

}  // namespace

ForkedWriter::Gate::~Gate() {
    if (word_) ::munmap(word_, sizeof *word_);
}

bool ForkedWriter::Gate::make() noexcept {
    if (!word_) {
        void* page =
            ::mmap(nullptr, sizeof *word_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (page == MAP_FAILED) return false;
        word_ = static_cast<uint32_t*>(page);
    }
    __atomic_store_n(word_, 0, __ATOMIC_RELEASE);
    return true;
}

void ForkedWriter::Gate::open() noexcept {
    if (!word_) return;
    __atomic_store_n(word_, 1, __ATOMIC_RELEASE);
    sys(SYS_futex, word_, FUTEX_WAKE, 1);
}

void ForkedWriter::Gate::wait() noexcept {
    struct timespec longest {
        0, 250'000'000
    };
    // A signal cannot come: all are blocked.
    if (!__atomic_load_n(word_, __ATOMIC_ACQUIRE)) sys(SYS_futex, word_, FUTEX_WAIT, 0, &longest);
}

bool ForkedWriter::start(image::Writer& writer, const std::function<void()>& first) {
    if (!gate_.make()) return false;
    sigset_t all, before;
    sigfillset(&all);
    sys(SYS_rt_sigprocmask, SIG_SETMASK, &all, &before, 8);
    int fd = -1;
    long parent = sys(SYS_getpid);
    long pid = sys(SYS_clone, static_cast<long>(CLONE_PIDFD), nullptr, &fd, nullptr, 0);
    if (pid == 0)
        child(writer, parent, [&] {
            gate_.wait();
            first();
        });
    sys(SYS_rt_sigprocmask, SIG_SETMASK, &before, nullptr, 8);
    if (failed(pid)) return false;
    pidfd_ = Fd(split::raise_descriptor(fd));
    return true;
}

void ForkedWriter::let_go() noexcept { gate_.open(); }

bool ForkedWriter::ended(std::string& why) {
    siginfo_t info{};
    long rc = sys(SYS_waitid, kPidfd, pidfd_.get(), &info, WEXITED | WNOHANG | __WALL, nullptr);
    if (failed(rc))
        why = "the child that wrote the image cannot be waited for";
    else if (info.si_pid == 0)
        return false;
    else if (info.si_code != CLD_EXITED)
        why = fmt::format("the child that wrote the image was ended by signal {}", info.si_status);
    pidfd_.reset();
    return true;
}

void ForkedWriter::kill() noexcept {
    if (!pidfd_) return;
    sys(SYS_pidfd_send_signal, pidfd_.get(), SIGKILL, nullptr, 0);
    siginfo_t info{};
    sys(SYS_waitid, kPidfd, pidfd_.get(), &info, WEXITED | __WALL, nullptr);
    pidfd_.reset();
}

std::string too_little_memory(uint64_t bytes, unsigned neighbours) {
    uint64_t available = available_memory() / std::max(1u, neighbours);
    if (available >= bytes) return {};
    return fmt::format("{} of memory for this rank's {}: the job stands still while it is written",
                       human_size(available), human_size(bytes));
}

bool memory_is_short() {
    constexpr uint64_t kReserve = 64 << 20;
    return available_memory() < kReserve;
}

}  // namespace fermata::lower
