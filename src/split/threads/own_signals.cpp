#include "split/threads/own_signals.h"

#include <sys/ptrace.h>

#include "split/threads/bridge_text.h"
#include "split/threads/not_stopped.h"
#include "split/threads/raw.h"
#include "split/threads/records.h"
#include "split/threads/stop.h"
#include "split/threads/traced.h"

namespace fermata::split::threads {
namespace {

constexpr raw::SignalSet kStops = raw::signal_bit(kStopSignal) | raw::signal_bit(kSetxid);
constexpr int kMost =
    256;  // of one thread: 32 KiB; where more wait, all of them come without what they carry
constexpr int kSignals = 64;

// Written by the helper that traces.
struct Found {
    int count;
    siginfo_t info[kMost];
};

long peek(const TracedThread& thread, void* context) {
    Found& found = static_cast<Found*>(context)[thread.index];
    __ptrace_peeksiginfo_args wanted = {};
    wanted.nr = kMost;
    const long count = trace(PTRACE_PEEKSIGINFO, thread.tid, raw::word(&wanted), raw::word(found.info));
    if (count < 0) return count;
    found.count = static_cast<int>(count);
    return 0;
}

bool real_time(raw::SignalSet signals) { return (signals >> 31) != 0; }

}  // namespace

std::vector<OwnSignal> note_own_signals(std::vector<std::string>& warnings) {
    std::vector<OwnSignal> all;
    ThreadTable* threads = table();
    if (threads == nullptr) return all;
    std::vector<TracedThread> waited_for;
    std::vector<SavedThread*> saved_threads;
    for (uint32_t i = 0; i < threads->high_water; ++i) {
        const ThreadRecord& record = threads->record[i];
        if (record.run != Run::stopped) continue;
        SavedThread& saved = threads->saved[i];
        saved.pending = status_mask(task_file(record.tid, "status"), "SigPnd:") & ~kStops;
        if (saved.pending == 0) continue;
        waited_for.push_back({record.tid, static_cast<int>(waited_for.size())});
        saved_threads.push_back(&saved);
    }
    std::vector<Found> found(waited_for.size());
    trace_each(waited_for, peek, found.data());
    for (size_t i = 0; i < found.size(); ++i) {
        const bool shown = waited_for[i].error == 0 && found[i].count < kMost;
        if (!shown && real_time(saved_threads[i]->pending))
            warnings.push_back("real-time signals wait for thread " + std::string(saved_threads[i]->name) +
                               " alone: after a restart they come without their values, and each once");
        for (int n = 0; shown && n < found[i].count; ++n)
            if (const siginfo_t& info = found[i].info[n]; (kStops & raw::signal_bit(info.si_signo)) == 0)
                all.push_back({waited_for[i].tid, info});
    }
    return all;
}

void give_own_signals(const std::vector<OwnSignal>& all) {
    ThreadTable* threads = table();
    if (threads == nullptr) return;
    for (uint32_t i = 0; i < threads->high_water; ++i) {
        ThreadRecord& record = threads->record[i];
        SavedThread& saved = threads->saved[i];
        if (record.run == Run::free) continue;
        raw::SignalSet given = 0, refused = 0;
        for (const OwnSignal& one : all) {
            siginfo_t info = one.info;
            if (one.tid != saved.old_tid || info.si_signo < 1 || info.si_signo > kSignals) continue;
            const long error =
                raw::call(SYS_rt_tgsigqueueinfo, raw::getpid(), record.tid, info.si_signo, raw::word(&info));
            (error == 0 ? given : refused) |= raw::signal_bit(info.si_signo);
        }
        saved.pending &= ~(given & ~refused);
    }
}

}  // namespace fermata::split::threads
