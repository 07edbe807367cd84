#include "split/threads/masked.h"

#include <sys/ptrace.h>

#include <algorithm>
#include <iterator>

#include "split/threads/bridge_text.h"
#include "split/threads/raw.h"
#include "split/threads/records.h"

namespace fermata::split::threads {
namespace {

constexpr raw::SignalSet kStop = raw::signal_bit(kStopSignal);

// By record index. The helper writes these before the thread goes on, the stop handler reads them.
volatile uint8_t g_masked[kMaxThreads];
int g_error[kMaxThreads];

long open_stopped(const TracedThread& thread, void* process) {
    raw::SignalSet mask = 0;
    long error = trace(PTRACE_GETSIGMASK, thread.tid, sizeof mask, raw::word(&mask));
    if (error == 0 && (mask & kStop) != 0) {
        mask &= ~kStop;
        error = trace(PTRACE_SETSIGMASK, thread.tid, sizeof mask, raw::word(&mask));
        if (error == 0) g_masked[thread.index] = 1;
    }
    raw::call(SYS_tgkill, *static_cast<const int*>(process), thread.tid, kStopSignal);
    return error;
}

}  // namespace

void open_to_stop(std::vector<TracedThread> threads) {
    int process = raw::getpid();
    trace_each(threads, open_stopped, &process);
    for (const TracedThread& thread : threads) g_error[thread.index] = thread.error;
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
