#include "split/threads/restart.h"

#include <linux/sched.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <ucontext.h>

#include <atomic>
#include <cerrno>
#include <cstring>

#include "split/gate.h"
#include "split/threads/bridge_text.h"
#include "split/threads/donors.h"
#include "split/threads/escape.h"
#include "split/threads/interrupted.h"
#include "split/threads/mutexes.h"
#include "split/threads/raw.h"
#include "split/threads/raw_clone.h"
#include "split/threads/records.h"
#include "split/threads/rseq.h"
#include "split/threads/xstate.h"

namespace fermata::split::threads {
namespace {

std::atomic<uint32_t> g_started;

// Everything from here to sigreturn runs with an upper thread pointer: no TLS, no libc.

// Gives the kernel what it kept for the thread that was saved. Failures are left: nothing of it stops a
// program.
FERMATA_NO_TLS void register_again(ThreadRecord* record, SavedThread* saved) {
    record->tid = raw::gettid();
    if (saved->tid_in_descriptor != 0)
        *reinterpret_cast<volatile int32_t*>(record->upper_fs + static_cast<uint64_t>(table()->tid_offset)) =
            record->tid;
    if (record->clear_tid != 0) raw::call(SYS_set_tid_address, static_cast<long>(record->clear_tid));
    if (record->robust_list != 0)
        raw::call(SYS_set_robust_list, static_cast<long>(record->robust_list),
                  static_cast<long>(record->robust_len));
    if (record->rseq != 0 && saved->rseq_length != 0) register_rseq(record->rseq, saved->rseq_length);
    raw::call(SYS_prctl, PR_SET_NAME, raw::word(saved->name));
    set_own_attributes(&saved->own);
    if (saved->policy > 0) {
        int priority = saved->priority;
        raw::call(SYS_sched_setscheduler, 0, saved->policy, raw::word(&priority));
    }
    if (saved->nice != 0) raw::call(SYS_setpriority, PRIO_PROCESS, 0, saved->nice);
}

// A thread that is not attached may have inherited the thread pointer of a donor of the old process.
FERMATA_NO_TLS void set_gs(ThreadRecord* record, SavedThread* saved) {
    if (saved->attached != 0)
        be_known_as(record);
    else
        write_gs(saved->gs_base);
}

// Continues where the stop signal met the thread: the kernel takes registers, vector state, signal mask and
// alternate stack from the frame. All signals are blocked until then.
[[noreturn]] FERMATA_NO_TLS void continue_captured(ThreadRecord* record, SavedThread* saved) {
    auto* frame = static_cast<ucontext_t*>(record->context);
    int pid = raw::getpid();
    for (int number = 1; number <= 64; ++number)
        if ((saved->pending & raw::signal_bit(number)) != 0) raw::call(SYS_tgkill, pid, record->tid, number);
    undo_rewind_if_signalled(saved->restarted_call, frame);
    record->context = nullptr;
    asm volatile(
        "mov %0, %%rsp\n\t"
        "mov $15, %%eax\n\t"  // rt_sigreturn expects the stack pointer behind the frame's return address: at
                              // uc
        "syscall\n\t"
        "ud2"
        :
        : "r"(frame)
        : "memory");
    __builtin_unreachable();
}

FERMATA_NO_TLS void wait_for_resume(ThreadRecord* record) {
    while (record->run == Run::stopped) raw::futex_wait(&record->run, static_cast<uint32_t>(Run::stopped));
}

}  // namespace

// First code of a restored thread, on its own stack below the captured frame.
[[noreturn]] FERMATA_NO_TLS void fermata_thread_restored(ThreadRecord* record) {
    SavedThread* saved = &table()->saved[record->index];
    set_gs(record, saved);
    register_again(record, saved);
    g_started.fetch_add(1, std::memory_order_acq_rel);
    raw::futex_wake(&g_started);
    wait_for_resume(record);
    continue_captured(record, saved);
}

namespace {

// Signals are blocked, the new thread inherits that.
long clone_restored(ThreadRecord* record) {
    constexpr unsigned long kFlags =
        CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM | CLONE_SETTLS;
    // The frame's lower neighbours on the stack were the stop handler's: free.
    uint64_t stack = (reinterpret_cast<uint64_t>(record->context) - 256) & ~uint64_t{15};
    return raw::clone_into(kFlags, stack, record->upper_fs, fermata_thread_restored, record);
}

}  // namespace

void release_main_thread() { unregister_own_rseq(); }

std::string fit_frames_to_cpu() {
    ThreadTable& all = *table();
    for (uint32_t i = 0; i < all.high_water; ++i) {
        ThreadRecord& record = all.record[i];
        if (record.run != Run::stopped) continue;
        auto* frame = static_cast<ucontext_t*>(record.context);
        constexpr int kAmxTiles = 18;
        constexpr int kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
        if ((read_frame(frame).in_use & (1u << kAmxTiles)) != 0)
            raw::call(SYS_arch_prctl, kRequestPermission, kAmxTiles);
        std::string error = fit_frame(frame, all.xstate, own_xstate_layout());
        if (!error.empty()) return error;
    }
    return {};
}

RestoreReport restore_threads() {
    RestoreReport report;
    ThreadTable& all = *table();
    for (uint32_t i = 0; i < all.high_water; ++i)
        if (all.record[i].run == Run::stopped && all.saved[i].escapes != 0) bring_back(&all.record[i]);
    // Blocked until continue_main's sigreturn: the new threads inherit it, and nothing may run a handler
    // before.
    raw::set_signal_mask(raw::kAllSignals);
    g_started.store(0);
    for (uint32_t i = 0; i < all.high_water; ++i) {
        ThreadRecord& record = all.record[i];
        SavedThread& saved = all.saved[i];
        record.stop = 0;
        if (record.run != Run::stopped) {
            // Ended between the last look and the save, or never more than reserved.
            if (i != static_cast<uint32_t>(kMainIndex)) record.run = Run::free;
            continue;
        }
        if (i == static_cast<uint32_t>(kMainIndex)) {
            set_lower_side(&record, read_fs());
            record.tid = raw::gettid();
            continue;
        }
        set_lower_side(&record, 0);
        if (saved.attached != 0) {
            set_lower_side(&record, donor_for(&record));
            if (record.lower_fs == 0) {
                report.error =
                    "no thread could be made to serve an MPI thread: raise the limit of processes (ulimit "
                    "-u)";
                return report;
            }
        }
        long made = clone_restored(&record);
        if (made < 0) {
            report.error = std::string("thread ") + saved.name +
                           " could not be made again: " + std::strerror(static_cast<int>(-made)) +
                           ": raise the limit of processes (ulimit -u)";
            return report;
        }
        ++report.threads;
    }
    for (uint32_t started; (started = g_started.load()) < static_cast<uint32_t>(report.threads);)
        raw::futex_wait(&g_started, started);
    give_mutexes_to_new_ids();
    return report;
}

[[noreturn]] FERMATA_NO_TLS void continue_main() {
    ThreadRecord* record = &table()->record[kMainIndex];
    SavedThread* saved = &table()->saved[kMainIndex];
    raw::set_signal_mask(raw::kAllSignals);
    unregister_own_rseq();
    if (record->run == Run::gone)
        for (;;) raw::call(SYS_exit, 0);
    set_lower_side(record, read_fs());
    if (record->upper_fs != 0) write_fs(record->upper_fs);
    set_gs(record, saved);
    register_again(record, saved);
    wait_for_resume(record);
    continue_captured(record, saved);
}

}  // namespace fermata::split::threads
