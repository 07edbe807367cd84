#include "split/threads/masked.h"

#include <sched.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <iterator>

#include "split/threads/bridge_text.h"
#include "split/threads/raw.h"
#include "split/threads/raw_clone.h"
#include "split/threads/records.h"

namespace fermata::split::threads {
namespace {

constexpr raw::SignalSet kStop = raw::signal_bit(kStopSignal);

// By record index. The helper writes these before the thread goes on, the stop handler reads them.
volatile uint8_t g_masked[kMaxThreads];
int g_error[kMaxThreads];

// Shared by agent and helper; the agent stands until the helper has ended.
struct Work {
    const MaskedThread* threads;
    size_t count;
    int process;
};

long trace(long request, int tid, long address = 0, long data = 0) {
    return raw::call(SYS_ptrace, request, tid, address, data);
}

// The thread stands: its mask is changed, and it goes on, with the signal that it was about to get.
void open_stopped(const Work& work, const MaskedThread& thread, int status) {
    raw::SignalSet mask = 0;
    long error = trace(PTRACE_GETSIGMASK, thread.tid, sizeof mask, raw::word(&mask));
    if (error == 0 && (mask & kStop) != 0) {
        mask &= ~kStop;
        error = trace(PTRACE_SETSIGMASK, thread.tid, sizeof mask, raw::word(&mask));
        if (error == 0) g_masked[thread.index] = 1;
    }
    raw::call(SYS_tgkill, work.process, thread.tid, kStopSignal);
    const bool by_signal = status >> 16 == 0;
    trace(PTRACE_DETACH, thread.tid, 0, by_signal ? WSTOPSIG(status) : 0);
    g_error[thread.index] = static_cast<int>(error);
}

// The helper: another process in this memory, as between vfork and exec. A thread that it still traces when
// it ends goes on by itself.
void help(const Work* work) {
    for (size_t i = 0; i < work->count; ++i) {
        const MaskedThread& thread = work->threads[i];
        long error = trace(PTRACE_SEIZE, thread.tid);
        if (error == 0) error = trace(PTRACE_INTERRUPT, thread.tid);
        g_error[thread.index] = error == 0 ? -ETIMEDOUT : static_cast<int>(error);
    }
    constexpr int kTries = 500;  // with pauses of 0.5 ms: a quarter of a second
    for (int tries = 0; tries < kTries; ++tries) {
        bool waiting = false;
        for (size_t i = 0; i < work->count; ++i) {
            const MaskedThread& thread = work->threads[i];
            if (g_error[thread.index] != -ETIMEDOUT) continue;
            int status = 0;
            long one = raw::call(SYS_wait4, thread.tid, raw::word(&status), __WALL | WNOHANG);
            if (one == thread.tid && WIFSTOPPED(status))
                open_stopped(*work, thread, status);
            else if (one != 0)
                g_error[thread.index] = 0;  // it has ended
            else
                waiting = true;
        }
        if (!waiting) return;
        static const timespec kPause = {0, 500'000};
        raw::call(SYS_nanosleep, raw::word(&kPause));
    }
}

alignas(16) char g_stack[16384];

// Its first code, on g_stack, with the agent's thread pointer.
void opening_helper(const Work* work) {
    help(work);
    for (;;) raw::call(SYS_exit, 0);
}

// Without exit signal, so that no wait() of the program's meets it; without a libc, whose fork() would copy
// the page tables of all that the program has.
long run_helper(const Work& work) {
    constexpr unsigned long kFlags = CLONE_VM | CLONE_VFORK | CLONE_FS | CLONE_FILES;
    const long result = raw::clone_into(kFlags, reinterpret_cast<uint64_t>(g_stack + sizeof g_stack), 0,
                                        opening_helper, &work);
    if (result > 0) raw::call(SYS_wait4, result, 0, __WCLONE);
    return result;
}

bool forbidden(const Work& work) {
    return std::any_of(work.threads, work.threads + work.count,
                       [](const MaskedThread& thread) { return g_error[thread.index] == -EPERM; });
}

}  // namespace

void open_to_stop(const std::vector<MaskedThread>& threads) {
    if (threads.empty()) return;
    const Work work{threads.data(), threads.size(), raw::getpid()};
    long made = run_helper(work);
    // Yama lets a process be traced by its children only when it says so. (The program's own choice cannot be
    // asked for; it has allowed nobody, or the helper would have been.)
    if (made > 0 && forbidden(work) && raw::call(SYS_prctl, PR_SET_PTRACER, work.process) == 0) {
        made = run_helper(work);
        raw::call(SYS_prctl, PR_SET_PTRACER, 0);
    }
    if (made < 0)
        for (const MaskedThread& thread : threads) g_error[thread.index] = static_cast<int>(made);
}

int not_opened(int index) noexcept { return g_error[index]; }
void forget_not_opened() noexcept { std::fill(std::begin(g_error), std::end(g_error), 0); }

FERMATA_NO_TLS void mask_again(int index, ucontext_t* frame) noexcept {
    if (g_masked[index] == 0) return;
    g_masked[index] = 0;
    raw::SignalSet mask;
    __builtin_memcpy(&mask, &frame->uc_sigmask, sizeof mask);
    mask |= kStop;
    __builtin_memcpy(&frame->uc_sigmask, &mask, sizeof mask);
}

}  // namespace fermata::split::threads
