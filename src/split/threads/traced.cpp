#include "split/threads/traced.h"

#include <sched.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>

#include "split/threads/raw.h"
#include "split/threads/raw_clone.h"

namespace fermata::split::threads {
namespace {

// Shared by agent and helper; the agent stands until the helper has ended.
struct Work {
    TracedThread* threads;
    size_t count;
    WhileItStands act;
    void* context;
};

void act_on(const Work& work, TracedThread& thread, int status) {
    thread.error = static_cast<int>(work.act(thread, work.context));
    const bool by_signal = status >> 16 == 0;
    trace(PTRACE_DETACH, thread.tid, 0, by_signal ? WSTOPSIG(status) : 0);
}

// The helper: another process in this memory, as between vfork and exec. A thread that it still traces when
// it ends goes on by itself.
void help(const Work* work) {
    for (size_t i = 0; i < work->count; ++i) {
        TracedThread& thread = work->threads[i];
        long error = trace(PTRACE_SEIZE, thread.tid);
        if (error == 0) error = trace(PTRACE_INTERRUPT, thread.tid);
        thread.error = error == 0 ? -ETIMEDOUT : static_cast<int>(error);
    }
    constexpr int kTries = 500;  // with pauses of 0.5 ms: a quarter of a second
    for (int tries = 0; tries < kTries; ++tries) {
        bool waiting = false;
        for (size_t i = 0; i < work->count; ++i) {
            TracedThread& thread = work->threads[i];
            if (thread.error != -ETIMEDOUT) continue;
            int status = 0;
            long one = raw::call(SYS_wait4, thread.tid, raw::word(&status), __WALL | WNOHANG);
            if (one == thread.tid && WIFSTOPPED(status))
                act_on(*work, thread, status);
            else if (one != 0)
                thread.error = 0;  // it has ended
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
void tracing_helper(const Work* work) {
    help(work);
    for (;;) raw::call(SYS_exit, 0);
}

// Without exit signal, so that no wait() of the program's meets it; without a libc, whose fork() would copy
// the page tables of all that the program has.
long run_helper(const Work& work) {
    constexpr unsigned long kFlags = CLONE_VM | CLONE_VFORK | CLONE_FS | CLONE_FILES;
    const long result = raw::clone_into(kFlags, reinterpret_cast<uint64_t>(g_stack + sizeof g_stack), 0,
                                        tracing_helper, &work);
    if (result > 0) raw::call(SYS_wait4, result, 0, __WCLONE);
    return result;
}

bool forbidden(const std::vector<TracedThread>& threads) {
    return std::any_of(threads.begin(), threads.end(),
                       [](const TracedThread& thread) { return thread.error == -EPERM; });
}

}  // namespace

long trace(long request, int tid, long address, long data) {
    return raw::call(SYS_ptrace, request, tid, address, data);
}

void trace_each(std::vector<TracedThread>& threads, WhileItStands act, void* context) {
    if (threads.empty()) return;
    const Work work{threads.data(), threads.size(), act, context};
    long made = run_helper(work);
    // Yama lets a process be traced by its children only when it says so. (The program's own choice cannot be
    // asked for; it has allowed nobody, or the helper would have been.)
    if (made > 0 && forbidden(threads) && raw::call(SYS_prctl, PR_SET_PTRACER, raw::getpid()) == 0) {
        made = run_helper(work);
        raw::call(SYS_prctl, PR_SET_PTRACER, 0);
    }
    if (made < 0)
        for (TracedThread& thread : threads) thread.error = static_cast<int>(made);
}

}  // namespace fermata::split::threads
