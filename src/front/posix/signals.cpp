// Signals of the application.
//
// Handlers run behind a trampoline: a signal may meet a thread in the lower half, where the thread pointer is
// a donor's; the trampoline gives the handler the upper one and puts the donor's back. sigaction's answers
// show the application its own handler. The stop signal is hidden as glibc hides its internal ones: it is
// above SIGRTMAX, no mask holds it, nobody can take it.
//
// The batch system's warnings (warden.h) are held back: where there is a warden, the kernel's action of those
// signals is the trampoline, whatever the application has asked for.
//
// Limits: handlers installed with the raw system call get no trampoline; a handler that leaves by siglongjmp
// while the thread was in the lower half leaves MPI in the middle of a call (undefined in MPI anyway).
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>

#include "front/posix/next.h"
#include "front/posix/nobody.h"
#include "front/posix/sender.h"
#include "front/posix/warden.h"
#include "split/address/window.h"
#include "split/gate.h"
#include "split/threads/records.h"

// Old names without a declaration in this feature set.
extern "C" {
sighandler_t sysv_signal(int, sighandler_t) noexcept;
sighandler_t bsd_signal(int, sighandler_t) noexcept;
sighandler_t sigset(int, sighandler_t) noexcept;
int sigignore(int) noexcept;
}

namespace fermata::front::posix {

std::atomic<uint32_t> handlers_run, signals_held;

namespace {

namespace raw = split::raw;
using split::threads::kStopSignal;
constexpr int kSignals = 65;

Next<int(int, const struct sigaction*, struct sigaction*)> next_sigaction{"sigaction"};
Next<int(int, const sigset_t*, sigset_t*)> next_sigprocmask{"sigprocmask"};
Next<int(int, const sigset_t*, sigset_t*)> next_pthread_sigmask{"pthread_sigmask"};
Next<int(const sigset_t*)> next_sigsuspend{"sigsuspend"};
Next<int(const sigset_t*, int*)> next_sigwait{"sigwait"};
Next<int(const sigset_t*, siginfo_t*)> next_sigwaitinfo{"sigwaitinfo"};
Next<int(sigset_t*)> next_sigfillset{"sigfillset"};
Next<int(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*)> next_pthread_create{"pthread_create"};

// The application's own action, SIG_DFL and SIG_IGN too; valid while the kernel's handler is the trampoline.
struct Entry {
    void (*handler)(int, siginfo_t*, void*);
    int flags;
    sigset_t mask;
};
Entry g_entry[kSignals];

// sigaction may be called in a handler and by many threads: a spin lock with all signals blocked.
std::atomic<uint32_t> g_lock;
class Locked {
  public:
    Locked() : mask_(raw::set_signal_mask(raw::kAllSignals)) {
        while (g_lock.exchange(1, std::memory_order_acquire) != 0) sched_yield();
    }
    ~Locked() {
        g_lock.store(0, std::memory_order_release);
        raw::set_signal_mask(mask_);
    }

  private:
    raw::SignalSet mask_;
};

bool is(void (*handler)(int, siginfo_t*, void*), sighandler_t plain) {
    return reinterpret_cast<uintptr_t>(handler) == reinterpret_cast<uintptr_t>(plain);
}

// The program ends of it once the handler has returned: until then the signal is blocked.
void default_action(int number) {
    raw::KernelSigaction action = {};
    raw::call(SYS_rt_sigaction, number, raw::word(&action), 0, 8);
    raw::call(SYS_tgkill, raw::getpid(), raw::gettid(), number);
}

// With either thread pointer: no TLS before `handler` runs.
__attribute__((no_stack_protector)) void trampoline(int number, siginfo_t* info, void* context) {
    auto* handler = __atomic_load_n(&g_entry[number].handler, __ATOMIC_ACQUIRE);
    if (hold_back(number, info, is(handler, SIG_DFL))) {
        signals_held.fetch_add(1, std::memory_order_relaxed);
        return;
    }
    if (is(handler, SIG_DFL)) return default_action(number);
    if (is(handler, SIG_IGN)) return;
    // A signal that was held back is not the one that this handler is for: the kernel does not know.
    if (is_watched(number) && (g_entry[number].flags & static_cast<int>(SA_RESETHAND)) != 0)
        __atomic_store_n(&g_entry[number].handler, nullptr, __ATOMIC_RELEASE);
    handlers_run.fetch_add(1, std::memory_order_relaxed);
    show_sender(number, info);
    split::ThreadRecord* record = split::known_thread();
    uint64_t fs = split::read_fs();
    if (record == nullptr || (record->half == split::Half::upper && fs == record->upper_fs)) {
        handler(number, info, context);
        return;
    }
    split::Half half = record->half;
    record->in_mpi = record->in_mpi + 1;  // the stop signal must not capture what returns into the lower half
    split::write_fs(record->upper_fs);
    asm volatile("" ::: "memory");
    record->half = split::Half::upper;
    handler(number, info, context);
    record->half = half;
    asm volatile("" ::: "memory");
    split::write_fs(fs);
    record->in_mpi = record->in_mpi - 1;
}

bool plain(const struct sigaction& action) {
    return action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN;
}

int set_action(int number, const struct sigaction* wanted, struct sigaction* old) {
    if (number == kStopSignal) {
        errno = EINVAL;
        return -1;
    }
    if (number <= 0 || number >= kSignals) return next_sigaction(number, wanted, old);
    struct sigaction before;
    int result;
    Entry entry;
    {
        Locked locked;
        entry = g_entry[number];
        struct sigaction mine;
        if (wanted != nullptr) {
            mine = *wanted;
            sigdelset(&mine.sa_mask, kStopSignal);
            if (!plain(mine) || is_watched(number)) {
                g_entry[number].flags = mine.sa_flags;
                g_entry[number].mask = mine.sa_mask;
                __atomic_store_n(&g_entry[number].handler, mine.sa_sigaction, __ATOMIC_RELEASE);
                if (plain(mine)) mine.sa_flags = SA_RESTART;
                mine.sa_sigaction = trampoline;
                mine.sa_flags |= SA_SIGINFO;
                if (is_watched(number)) mine.sa_flags &= ~static_cast<int>(SA_RESETHAND);
            }
        }
        result = next_sigaction(number, wanted != nullptr ? &mine : nullptr, &before);
        if (result != 0) g_entry[number] = entry;
    }
    if (result != 0 || old == nullptr) return result;
    *old = before;
    if (before.sa_sigaction == trampoline) {
        old->sa_sigaction = entry.handler;
        old->sa_flags = entry.flags;
        old->sa_mask = entry.mask;
    } else if (!plain(before) && !split::upper_address(reinterpret_cast<uint64_t>(before.sa_sigaction))) {
        // The MPI library's own handler, which the application cannot know.
        memset(old, 0, sizeof *old);
        old->sa_handler = SIG_DFL;
    }
    return 0;
}

uint64_t g_interrupting;  // signals for which siginterrupt(…, 1) was asked

sighandler_t set_handler(int number, sighandler_t handler, int flags) {
    struct sigaction action = {}, old = {};
    action.sa_handler = handler;
    action.sa_flags = flags;
    if (handler == SIG_ERR) {
        errno = EINVAL;
        return SIG_ERR;
    }
    return set_action(number, &action, &old) == 0 ? old.sa_handler : SIG_ERR;
}

// The application's set without the stop signal.
class Without {
  public:
    explicit Without(const sigset_t* set) : given_(set) {
        if (set == nullptr) return;
        copy_ = *set;
        sigdelset(&copy_, kStopSignal);
    }
    const sigset_t* get() const { return given_ != nullptr ? &copy_ : nullptr; }

  private:
    const sigset_t* given_;
    sigset_t copy_;
};

// As libc's, by which unwinders know a signal frame.
__attribute__((naked)) void restorer() { asm("mov $15, %rax\n\tsyscall"); }

// No libc: at a restart it runs with the lower half's thread pointer.
void watch(int number) {
    Locked locked;
    raw::KernelSigaction now = {};
    raw::call(SYS_rt_sigaction, number, 0, raw::word(&now), 8);
    const auto ours = reinterpret_cast<uint64_t>(&trampoline);
    if (now.handler == ours || (now.handler > 1 && !split::upper_address(now.handler))) return;
    g_entry[number].flags = static_cast<int>(now.flags & ~raw::kSaRestorer);
    memset(&g_entry[number].mask, 0, sizeof g_entry[number].mask);
    memcpy(&g_entry[number].mask, &now.mask, sizeof now.mask);
    auto* handler = reinterpret_cast<void (*)(int, siginfo_t*, void*)>(now.handler);
    __atomic_store_n(&g_entry[number].handler, handler, __ATOMIC_RELEASE);
    raw::KernelSigaction action = {ours, SA_SIGINFO | SA_RESTART | raw::kSaRestorer,
                                   reinterpret_cast<uint64_t>(&restorer), 0};
    raw::call(SYS_rt_sigaction, number, raw::word(&action), 0, 8);
}

struct Start {
    void* (*routine)(void*);
    void* argument;
};
void* start_thread(void* given) {
    Start start = *static_cast<Start*>(given);
    // The GS base was inherited with the parent's record.
    become_nobody();
    free(given);
    return start.routine(start.argument);
}

}  // namespace

void watch_warden() noexcept {
    if (bridge()->warden == nullptr || bridge()->warden->pid == 0) return;
    for (int number = 1; number < kSignals; ++number)
        if (is_watched(number)) watch(number);
    raw::SignalSet unblock = bridge()->warden->to_unblock;
    bridge()->warden->to_unblock = 0;
    if (unblock != 0) raw::call(SYS_rt_sigprocmask, SIG_UNBLOCK, raw::word(&unblock), 0, 8);
}

}  // namespace fermata::front::posix

using namespace fermata::front::posix;

FERMATA_INTERPOSE int sigaction(int number, const struct sigaction* action, struct sigaction* old) noexcept {
    return set_action(number, action, old);
}
FERMATA_INTERPOSE int __sigaction(int number, const struct sigaction* action,
                                  struct sigaction* old) noexcept {
    return set_action(number, action, old);
}

FERMATA_INTERPOSE sighandler_t signal(int number, sighandler_t handler) noexcept {
    bool interrupting = number > 0 && number < kSignals && (g_interrupting >> (number - 1) & 1) != 0;
    return set_handler(number, handler, interrupting ? 0 : SA_RESTART);
}
FERMATA_INTERPOSE sighandler_t bsd_signal(int number, sighandler_t handler) noexcept {
    return signal(number, handler);
}
FERMATA_INTERPOSE sighandler_t ssignal(int number, sighandler_t handler) noexcept {
    return signal(number, handler);
}
FERMATA_INTERPOSE sighandler_t sysv_signal(int number, sighandler_t handler) noexcept {
    return set_handler(number, handler, static_cast<int>(SA_RESETHAND) | SA_NODEFER);
}
FERMATA_INTERPOSE sighandler_t __sysv_signal(int number, sighandler_t handler) noexcept {
    return sysv_signal(number, handler);
}
FERMATA_INTERPOSE int sigignore(int number) noexcept {
    return set_handler(number, SIG_IGN, 0) == SIG_ERR ? -1 : 0;
}
FERMATA_INTERPOSE int siginterrupt(int number, int interrupt) noexcept {
    struct sigaction action;
    if (set_action(number, nullptr, &action) != 0) return -1;
    uint64_t bit = uint64_t{1} << (number - 1);
    if (interrupt != 0) {
        g_interrupting |= bit;
        action.sa_flags &= ~SA_RESTART;
    } else {
        g_interrupting &= ~bit;
        action.sa_flags |= SA_RESTART;
    }
    return set_action(number, &action, nullptr);
}
// X/Open: also (un)blocks, and tells whether the signal was blocked.
FERMATA_INTERPOSE sighandler_t sigset(int number, sighandler_t handler) noexcept {
    struct sigaction old;
    sigset_t one, before;
    sigemptyset(&one);
    if (number == kStopSignal || sigaddset(&one, number) != 0) {
        errno = EINVAL;
        return SIG_ERR;
    }
    if (handler == SIG_HOLD) {
        if (next_sigprocmask(SIG_BLOCK, &one, &before) != 0 || set_action(number, nullptr, &old) != 0)
            return SIG_ERR;
    } else {
        sighandler_t was = set_handler(number, handler, 0);
        if (was == SIG_ERR || next_sigprocmask(SIG_UNBLOCK, &one, &before) != 0) return SIG_ERR;
        old.sa_handler = was;
    }
    return sigismember(&before, number) == 1 ? SIG_HOLD : old.sa_handler;
}

FERMATA_INTERPOSE int sigfillset(sigset_t* set) noexcept {
    int result = next_sigfillset(set);
    if (result == 0) sigdelset(set, kStopSignal);
    return result;
}
// SIGRTMAX: the last real-time signal is ours.
FERMATA_INTERPOSE int __libc_current_sigrtmax() noexcept { return kStopSignal - 1; }

FERMATA_INTERPOSE int sigprocmask(int how, const sigset_t* set, sigset_t* old) noexcept {
    return next_sigprocmask(how, Without(set).get(), old);
}
FERMATA_INTERPOSE int pthread_sigmask(int how, const sigset_t* set, sigset_t* old) noexcept {
    return next_pthread_sigmask(how, Without(set).get(), old);
}
FERMATA_INTERPOSE int sigsuspend(const sigset_t* set) { return next_sigsuspend(Without(set).get()); }
FERMATA_INTERPOSE int sigwait(const sigset_t* set, int* number) {
    return next_sigwait(Without(set).get(), number);
}
FERMATA_INTERPOSE int sigwaitinfo(const sigset_t* set, siginfo_t* info) {
    int number = next_sigwaitinfo(Without(set).get(), info);
    show_sender(number, info);
    return number;
}

FERMATA_INTERPOSE int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                                     void* (*routine)(void*), void* argument) noexcept {
    auto* start = static_cast<Start*>(malloc(sizeof(Start)));
    if (start == nullptr) return EAGAIN;
    *start = {routine, argument};
    int result = next_pthread_create(thread, attributes, start_thread, start);
    if (result != 0) free(start);
    return result;
}
