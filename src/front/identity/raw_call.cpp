// syscall(): programs ask for their ids, and act on those of others, past libc's functions. Until the first
// restart it costs a comparison.
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>

#include "front/core/ended.h"
#include "front/core/ids.h"
#include "front/posix/answer.h"
#include "front/posix/next.h"
#include "front/posix/sender.h"

namespace fermata::front::identity {
namespace {

using Words = long(long, long, long, long, long, long, long);
using posix::answer;
posix::Next<Words> next_syscall{"syscall"};

__attribute__((constructor)) void find_all() { next_syscall.find(); }

// The meaning of a number, in an argument or a result.
enum class Means : uint8_t {
    nothing,
    id,       // a process or thread
    parent,   // getppid's
    group,    //
    session,  //
    target,   // as kill() and wait4() take it
};

// One system call whose numbers mean processes: its result, and up to two arguments.
struct Meaning {
    int16_t call;
    Means result;
    int8_t first;  // place of an argument, -1: none
    Means means_first;
    int8_t second;
    Means means_second;
};

constexpr Means kNothing = Means::nothing, kId = Means::id, kParent = Means::parent, kGroup = Means::group,
                kSession = Means::session, kTarget = Means::target;
constexpr Meaning kMeanings[] = {
    {SYS_getpid, kId, -1, kNothing, -1, kNothing},
    {SYS_gettid, kId, -1, kNothing, -1, kNothing},
    {SYS_getppid, kParent, -1, kNothing, -1, kNothing},
    {SYS_getpgrp, kGroup, -1, kNothing, -1, kNothing},
    {SYS_getpgid, kGroup, 0, kId, -1, kNothing},
    {SYS_getsid, kSession, 0, kId, -1, kNothing},
    {SYS_kill, kNothing, 0, kTarget, -1, kNothing},
    {SYS_tkill, kNothing, 0, kId, -1, kNothing},
    {SYS_tgkill, kNothing, 0, kId, 1, kId},
    {SYS_rt_sigqueueinfo, kNothing, 0, kId, -1, kNothing},
    {SYS_rt_tgsigqueueinfo, kNothing, 0, kId, 1, kId},
    {SYS_wait4, kId, 0, kTarget, -1, kNothing},
    {SYS_fork, kId, -1, kNothing, -1, kNothing},
    {SYS_sched_setaffinity, kNothing, 0, kId, -1, kNothing},
    {SYS_sched_getaffinity, kNothing, 0, kId, -1, kNothing},
    {SYS_sched_setparam, kNothing, 0, kId, -1, kNothing},
    {SYS_sched_getparam, kNothing, 0, kId, -1, kNothing},
    {SYS_sched_setscheduler, kNothing, 0, kId, -1, kNothing},
    {SYS_sched_getscheduler, kNothing, 0, kId, -1, kNothing},
    {SYS_sched_rr_get_interval, kNothing, 0, kId, -1, kNothing},
    {SYS_sched_setattr, kNothing, 0, kId, -1, kNothing},
    {SYS_sched_getattr, kNothing, 0, kId, -1, kNothing},
    {SYS_prlimit64, kNothing, 0, kId, -1, kNothing},  // by Go
    {SYS_process_vm_readv, kNothing, 0, kId, -1, kNothing},
    {SYS_process_vm_writev, kNothing, 0, kId, -1, kNothing},
    {SYS_pidfd_open, kNothing, 0, kId, -1, kNothing},
    {SYS_move_pages, kNothing, 0, kId, -1, kNothing},
    {SYS_migrate_pages, kNothing, 0, kId, -1, kNothing},
    {SYS_kcmp, kNothing, 0, kId, 1, kId},
    {SYS_ptrace, kNothing, 1, kId, -1, kNothing},
    {SYS_perf_event_open, kNothing, 1, kId, -1, kNothing},
    {SYS_get_robust_list, kNothing, 0, kId, -1, kNothing},
};

long real(Means means, long number) {
    const auto shown = static_cast<int>(number);
    switch (means) {
        case Means::id:
            return real_id(shown);
        case Means::group:
            return real_group(shown);
        case Means::target:
            return real_target(shown);
        default:
            return number;
    }
}

long shown(Means means, long number) {
    const auto real = static_cast<int>(number);
    switch (means) {
        case Means::id:
            return shown_id(real);
        case Means::group:
            return shown_group(real);
        case Means::session:
            return shown_session(real);
        case Means::parent:
            return shown_parent(real);
        default:
            return number;
    }
}

// Calls that would meet the lower half's descriptors: as libc's functions, which leave them alone
// (posix/closing.cpp, posix/descriptor_limit.cpp).
bool of_descriptors(long number, const long (&word)[3], long fourth, long& result) {
    const int first = static_cast<int>(word[0]), second = static_cast<int>(word[1]);
    switch (number) {
        case SYS_close:
            result = close(first);
            return true;
        case SYS_close_range:
            result = close_range(static_cast<unsigned>(first), static_cast<unsigned>(second),
                                 static_cast<int>(word[2]));
            return true;
        case SYS_dup2:
            result = dup2(first, second);
            return true;
        case SYS_dup3:
            result = dup3(first, second, static_cast<int>(word[2]));
            return true;
        case SYS_getrlimit:
            result = getrlimit(static_cast<__rlimit_resource>(first), reinterpret_cast<rlimit*>(word[1]));
            return true;
        case SYS_setrlimit:
            result = setrlimit(static_cast<__rlimit_resource>(first), reinterpret_cast<rlimit*>(word[1]));
            return true;
        case SYS_prlimit64:
            result = prlimit(first, static_cast<__rlimit_resource>(second),
                             reinterpret_cast<rlimit*>(word[2]), reinterpret_cast<rlimit*>(fourth));
            return true;
        default:
            return false;
    }
}

// A clone that returns where it was called, as fork does; others must not come through a function.
bool is_fork(long flags, long stack) { return (flags & CLONE_VM) == 0 && stack == 0; }

// Those that libc's functions do in the same way, structures included: their interposers know how.
bool by_function(long number, const long (&word)[6], long& result) {
    auto pointer = [](long w) { return reinterpret_cast<void*>(w); };
    switch (number) {
        case SYS_setpgid:
            result = setpgid(static_cast<pid_t>(word[0]), static_cast<pid_t>(word[1]));
            return true;
        case SYS_setsid:
            result = setsid();
            return true;
        case SYS_setpriority:
            result = setpriority(static_cast<__priority_which>(word[0]), static_cast<id_t>(word[1]),
                                 static_cast<int>(word[2]));
            return true;
        case SYS_fcntl:
            if (word[1] != F_SETOWN && word[1] != F_GETOWN && word[1] != F_SETOWN_EX &&
                word[1] != F_GETOWN_EX && word[1] != F_GETLK)
                return false;
            result = fcntl(static_cast<int>(word[0]), static_cast<int>(word[1]), word[2]);
            return true;
        case SYS_getsockopt:
            result =
                getsockopt(static_cast<int>(word[0]), static_cast<int>(word[1]), static_cast<int>(word[2]),
                           pointer(word[3]), static_cast<socklen_t*>(pointer(word[4])));
            return true;
        case SYS_timer_create: {
            // libc's timers are not the kernel's numbers.
            auto* event = static_cast<sigevent*>(pointer(word[1]));
            if (event == nullptr || event->sigev_notify != SIGEV_THREAD_ID) return false;
            sigevent with_real = *event;
            with_real._sigev_un._tid = real_id(event->_sigev_un._tid);
            result = answer(sys(SYS_timer_create, word[0], &with_real, word[2]));
            return true;
        }
        default:
            return false;
    }
}

// wait4 and waitid of a child that has ended with an earlier process. False: the kernel knows.
bool of_ended(long number, long a, long b, long c, long d, long e, long& result) {
    auto* info = reinterpret_cast<siginfo_t*>(c);
    if (number == SYS_wait4) {
        result = ended_by_wait4(static_cast<int>(a), reinterpret_cast<int*>(b), reinterpret_cast<rusage*>(d));
        return result != 0;
    }
    result = 0;
    return number == SYS_waitid && ended_by_waitid(static_cast<idtype_t>(a), static_cast<int>(b), info,
                                                   static_cast<int>(d), reinterpret_cast<rusage*>(e));
}

// The arguments of waitid.
void real_child(long (&word)[6]) {
    if (word[0] == P_PID || word[0] == P_PGID) word[1] = real(word[0] == P_PID ? kId : kGroup, word[1]);
}

// Makes the arguments the kernel's, and says what the result means.
Means translate(long number, long (&word)[6]) {
    for (const Meaning& meaning : kMeanings) {
        if (meaning.call != number) continue;
        if (meaning.first >= 0) word[meaning.first] = real(meaning.means_first, word[meaning.first]);
        if (meaning.second >= 0) word[meaning.second] = real(meaning.means_second, word[meaning.second]);
        return meaning.result;
    }
    return number == SYS_clone && is_fork(word[0], word[1]) ? kId : kNothing;
}

long with_numbers(long number, long a, long b, long c, long d, long e, long f) {
    long word[6] = {a, b, c, d, e, f};
    long result;
    if (by_function(number, word, result)) return result;
    if ((number == SYS_getpriority || number == SYS_ioprio_get || number == SYS_ioprio_set)) {
        // getpriority counts kinds from 0, ioprio_get from 1: process, group, user.
        const long kind = word[0] - (number == SYS_getpriority ? 0 : 1);
        if (kind == 0 || kind == 1) word[1] = real(kind == 0 ? kId : kGroup, word[1]);
    }
    if (number == SYS_waitid) real_child(word);
    const Means means = translate(number, word);
    // The number that a process says of itself in a signal becomes the kernel's again: the receiver is shown
    // it.
    siginfo_t told;
    const int place = number == SYS_rt_sigqueueinfo ? 2 : number == SYS_rt_tgsigqueueinfo ? 3 : 0;
    if (place != 0 && word[place] != 0) {
        __builtin_memcpy(&told, reinterpret_cast<void*>(word[place]), sizeof told);
        if (split::ids::names_sender(static_cast<int>(word[place - 1]), told))
            told.si_pid = real_id(told.si_pid);
        word[place] = reinterpret_cast<long>(&told);
    }
    result = next_syscall(number, word[0], word[1], word[2], word[3], word[4], word[5]);
    auto* info = reinterpret_cast<siginfo_t*>(number == SYS_waitid            ? c
                                              : number == SYS_rt_sigtimedwait ? b
                                                                              : 0);
    if (info != nullptr && result >= 0)
        posix::show_sender(number == SYS_waitid ? SIGCHLD : static_cast<int>(result), info);
    return shown(means, result);
}

}  // namespace
}  // namespace fermata::front::identity

// Six words, whatever the caller gave: what stands in their places is handed on, as libc's does. vfork and
// clones with a stack of their own leave no frame of ours between them and their caller (a jump).
extern "C" __attribute__((visibility("default"))) long fermata_syscall(long number, long a, long b, long c,
                                                                       long d, long e, long f) asm("syscall");
long fermata_syscall(long number, long a, long b, long c, long d, long e, long f) {
    using namespace fermata::front;
    using namespace fermata::front::identity;
    const bool through = number == SYS_vfork || number == SYS_clone3 ||
                         (number == SYS_clone && !is_fork(a, b)) || number == SYS_rt_sigreturn;
    long result;
    if (of_descriptors(number, {a, b, c}, d, result)) return result;
    if (ended.any() && of_ended(number, a, b, c, d, e, result)) return result;
    if (!ids_changed() || through) return next_syscall(number, a, b, c, d, e, f);
    return with_numbers(number, a, b, c, d, e, f);
}

// Go keeps a register of SSE for itself (CMakeLists.txt), and its stacks are small: nothing of libc.
extern "C" long fermata_raw_call(long number, long a, long b, long c, long d, long e, long f) noexcept {
    using namespace fermata::front;
    using namespace fermata::front::identity;
    if (!ids_changed()) return fermata::sys(number, a, b, c, d, e, f);
    long word[6] = {a, b, c, d, e, f};
    long result;
    if (ended.any() && of_ended(number, a, b, c, d, e, result)) return result;
    if (number == SYS_waitid) real_child(word);
    const Means means = translate(number, word);
    result = fermata::sys(number, word[0], word[1], word[2], word[3], word[4], word[5]);
    if (number == SYS_waitid && result == 0)
        fermata::front::posix::show_sender(SIGCHLD, reinterpret_cast<siginfo_t*>(c));
    return result > 0 ? shown(means, result) : result;
}
