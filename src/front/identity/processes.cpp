// The program's own ids, its groups and sessions, and signals to processes and threads: all by the numbers
// that the program had before a restart (split/ids/table.h).
#include <sched.h>
#include <signal.h>
#include <sys/types.h>
#include <unistd.h>

#include "front/core/bridge.h"
#include "front/core/ids.h"
#include "front/posix/answer.h"
#include "front/posix/next.h"

namespace fermata::front::identity {
namespace {

using posix::answer;
using posix::Next;

Next<int(pid_t, int, sigval)> next_sigqueue{"sigqueue"};

__attribute__((constructor)) void find_all() { next_sigqueue.find(); }

// The number of a group that may not be there yet: a process becomes the leader of one that is called like
// itself.
int group_to_join(pid_t process, pid_t group) {
    const pid_t itself = process != 0 ? process : shown_id(real_pid());
    return group == 0 ? 0 : group == itself ? real_id(group) : real_group(group);
}

// A group or session that the process has left is called after a process again. Not in the child of a vfork,
// whose memory is the parent's.
void has_left(split::ids::Whole& whole, long now) {
    if (bridge() != nullptr && bridge()->process == real_pid() && whole.real != now)
        whole.real = split::ids::Whole::kLeft;
}

}  // namespace
}  // namespace fermata::front::identity

using namespace fermata;
using namespace fermata::front;
using namespace fermata::front::identity;

FERMATA_INTERPOSE pid_t getpid() noexcept { return shown_id(real_pid()); }
extern "C" __attribute__((alias("getpid"), visibility("default"))) pid_t __getpid() noexcept;
FERMATA_INTERPOSE pid_t gettid() noexcept { return shown_id(static_cast<int>(sys(SYS_gettid))); }
FERMATA_INTERPOSE pid_t getppid() noexcept { return shown_parent(static_cast<int>(sys(SYS_getppid))); }

FERMATA_INTERPOSE pid_t getpgrp() noexcept { return shown_group(static_cast<int>(sys(SYS_getpgrp))); }
FERMATA_INTERPOSE pid_t getpgid(pid_t process) noexcept {
    return shown_group(static_cast<int>(answer(sys(SYS_getpgid, real_id(process)))));
}
extern "C" __attribute__((alias("getpgid"), visibility("default"))) pid_t __getpgid(pid_t) noexcept;
FERMATA_INTERPOSE pid_t getsid(pid_t process) noexcept {
    return shown_session(static_cast<int>(answer(sys(SYS_getsid, real_id(process)))));
}
FERMATA_INTERPOSE int setpgid(pid_t process, pid_t group) noexcept {
    const int to_join = group_to_join(process, group);
    const long result = answer(sys(SYS_setpgid, real_id(process), to_join));
    // The leader of a group of its own is called after itself, also where it was one without having asked.
    const bool leads =
        (process == 0 || real_id(process) == real_pid()) && (to_join == 0 || to_join == real_pid());
    if (result == 0) has_left(ids.group, leads ? 0 : sys(SYS_getpgrp));
    return static_cast<int>(result);
}
FERMATA_INTERPOSE int setpgrp() noexcept { return setpgid(0, 0); }
FERMATA_INTERPOSE pid_t setsid() noexcept {
    const long session = answer(sys(SYS_setsid));
    if (session > 0) {
        has_left(ids.group, session);
        has_left(ids.session, session);
    }
    return shown_id(static_cast<int>(session));
}

FERMATA_INTERPOSE int kill(pid_t target, int number) noexcept {
    return static_cast<int>(answer(sys(SYS_kill, real_target(target), number)));
}
FERMATA_INTERPOSE int killpg(pid_t group, int number) noexcept {
    return static_cast<int>(group < 0 ? answer(-EINVAL) : answer(sys(SYS_kill, -real_group(group), number)));
}
FERMATA_INTERPOSE int tgkill(pid_t process, pid_t thread, int number) noexcept {
    return static_cast<int>(answer(sys(SYS_tgkill, real_id(process), real_id(thread), number)));
}
FERMATA_INTERPOSE int sigqueue(pid_t process, int number, const sigval value) noexcept {
    return next_sigqueue(real_id(process), number, value);
}
FERMATA_INTERPOSE int pidfd_open(pid_t process, unsigned flags) noexcept {
    return static_cast<int>(answer(sys(SYS_pidfd_open, real_id(process), flags)));
}
