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
uint32_t g_open;  // how many of them are set
int g_error[kMaxThreads];
bool (*g_in_section)();

long open_stopped(const TracedThread& thread, void* process) {
    if (g_in_section != nullptr && g_in_section()) return 0;  // it is asked again
    raw::SignalSet mask = 0;
    long error = trace(PTRACE_GETSIGMASK, thread.tid, sizeof mask, raw::word(&mask));
    if (error == 0 && (mask & kStop) != 0) {
        mask &= ~kStop;
        error = trace(PTRACE_SETSIGMASK, thread.tid, sizeof mask, raw::word(&mask));
        if (error == 0 && g_masked[thread.index] == 0) {
            g_masked[thread.index] = 1;
            __atomic_fetch_add(&g_open, 1, __ATOMIC_SEQ_CST);
        }
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

void never_open_while(bool (*in_section)()) noexcept { g_in_section = in_section; }

int not_opened(int index) noexcept { return g_error[index]; }
void forget_not_opened() noexcept { std::fill(std::begin(g_error), std::end(g_error), 0); }

FERMATA_NO_TLS bool somebody_open() noexcept { return __atomic_load_n(&g_open, __ATOMIC_SEQ_CST) != 0; }

FERMATA_NO_TLS void mask_again(int index, ucontext_t* frame) noexcept {
    if (g_masked[index] == 0) return;
    g_masked[index] = 0;
    __atomic_fetch_sub(&g_open, 1, __ATOMIC_SEQ_CST);
    raw::SignalSet mask;
    __builtin_memcpy(&mask, &frame->uc_sigmask, sizeof mask);
    mask |= kStop;
    __builtin_memcpy(&frame->uc_sigmask, &mask, sizeof mask);
}

}  // namespace fermata::split::threads
