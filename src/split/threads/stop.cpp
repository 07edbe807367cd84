#include "split/threads/stop.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <ucontext.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/page.h"
#include "split/address/window.h"
#include "split/gate.h"
#include "split/threads/bridge_text.h"
#include "split/threads/donors.h"
#include "split/threads/escape.h"
#include "split/threads/interrupted.h"
#include "split/threads/masked.h"
#include "split/threads/mutexes.h"
#include "split/threads/not_stopped.h"
#include "split/threads/raw.h"
#include "split/threads/records.h"
#include "split/threads/rseq.h"
#include "split/threads/xstate.h"

// Read by the assembly below and by the handler on upper threads.
extern "C" {
__attribute__((visibility("hidden"))) volatile uint32_t fermata_stop_wanted = 0;
__attribute__((visibility("hidden"))) extern const uint64_t fermata_stop_set;
const uint64_t fermata_stop_set = fermata::split::raw::signal_bit(fermata::split::threads::kStopSignal);
extern const char __start_fermata_bridge_text[] __attribute__((visibility("hidden")));
extern const char __stop_fermata_bridge_text[] __attribute__((visibility("hidden")));
extern const char fermata_stop_point_open[] __attribute__((visibility("hidden")));
extern const char fermata_stop_point_end[] __attribute__((visibility("hidden")));
__attribute__((visibility("hidden"))) void fermata_stop_return();
}

// stop_point: raises the stop signal for this thread. It has no frame, so that the stack pointer always
// points at the return address: the handler rewrites the captured frame to "just returned", and the frame
// never refers to this code, which is elsewhere after a restart. The mask that the thread had stands in the
// red zone, which signal frames leave alone.
asm(R"(
    .pushsection fermata_bridge_text, "ax", @progbits
    .globl fermata_stop_point
    .globl fermata_stop_point_open
    .hidden fermata_stop_point_open
    .hidden fermata_stop_point_end
    .type fermata_stop_point, @function
fermata_stop_point:
    endbr64
    cmpl $0, fermata_stop_wanted(%rip)
    jne 1f
    ret                                 /* before the label below: no mask has been kept */
1:  mov $1, %edi                        /* SIG_UNBLOCK */
    lea fermata_stop_set(%rip), %rsi
    lea -16(%rsp), %rdx
    mov $8, %r10d
    mov $14, %eax                       /* rt_sigprocmask */
    syscall
fermata_stop_point_open:
    mov $39, %eax                       /* getpid */
    syscall
    mov %eax, %edi
    mov $186, %eax                      /* gettid */
    syscall
    mov %eax, %esi
    mov $64, %edx
    mov $234, %eax                      /* tgkill */
    syscall
    ret
fermata_stop_point_end:
    .size fermata_stop_point, . - fermata_stop_point
    .popsection

    .text
    .hidden fermata_stop_return
    .type fermata_stop_return, @function
fermata_stop_return:
    mov $15, %eax                       /* rt_sigreturn */
    syscall
    ud2
    .size fermata_stop_return, . - fermata_stop_return
)");
static_assert(fermata::split::threads::kStopSignal == 64, "the number stands in the assembly above");

namespace fermata::split::threads {
namespace {

volatile uint32_t g_setxid_sent;  // in this stop

std::atomic<uint32_t> g_progress;  // moves whenever a thread was captured or told
volatile uint32_t g_stop_count;
XstateLayout g_layout;

FERMATA_NO_TLS void tell_agent() {
    g_progress.fetch_add(1, std::memory_order_acq_rel);
    raw::futex_wake(&g_progress, 1);
}

template <class T>
FERMATA_NO_TLS bool exchange_run(T* record, Run from, Run to) {
    auto expected = static_cast<uint32_t>(from);
    auto* word = const_cast<uint32_t*>(reinterpret_cast<volatile uint32_t*>(&record->run));
    return __atomic_compare_exchange_n(word, &expected, static_cast<uint32_t>(to), false, __ATOMIC_SEQ_CST,
                                       __ATOMIC_SEQ_CST);
}

FERMATA_NO_TLS bool in_stop_point(uint64_t rip) {
    return rip >= reinterpret_cast<uint64_t>(&fermata_stop_point) &&
           rip < reinterpret_cast<uint64_t>(fermata_stop_point_end);
}
FERMATA_NO_TLS bool lower_code(uint64_t rip) {
    if (rip >= reinterpret_cast<uint64_t>(__start_fermata_bridge_text) &&
        rip < reinterpret_cast<uint64_t>(__stop_fermata_bridge_text))
        return true;
    return is_split() && !upper_address(rip);
}

// Finds libc's brk around this place by its code, since restarted mappings have no names; 0: it is elsewhere.
FERMATA_NO_TLS uint64_t brk_around(uint64_t rip) {
    constexpr unsigned char kCall[] = {0xb8, SYS_brk, 0, 0, 0, 0x0f, 0x05};  // mov $SYS_brk, %eax; syscall
    constexpr uint64_t kFunction = 32;                                       // bytes up to its decision
    if (!is_split() || !upper_address(rip)) return 0;
    const uint64_t readable = page_down(rip - 1);
    for (uint64_t at = rip - sizeof kCall; at >= readable && rip - at < kFunction; --at)
        if (__builtin_memcmp(reinterpret_cast<const void*>(at), kCall, sizeof kCall) == 0) return at;
    return 0;
}

// Lets a brk that has failed, as all do here, fail once more; false: it has not. A signal meets a thread
// where a system call returns, and libc puts brk's answer into `__curbrk`: a stale one would undo what a
// restart has put there (memory/break_word.h), and malloc would write to nowhere.
FERMATA_NO_TLS bool fail_again_in_brk(uint64_t brk, greg_t* registers) {
    if (static_cast<uint64_t>(registers[REG_RAX]) >= static_cast<uint64_t>(registers[REG_RDI])) return false;
    registers[REG_RIP] = static_cast<greg_t>(brk);
    registers[REG_RDI] = -1;
    return true;
}

// Notes what the kernel keeps for the calling thread, and a new thread must be given.
FERMATA_NO_TLS void note_registrations(ThreadRecord* record) {
    raw::call(SYS_get_robust_list, 0, raw::word(&record->robust_list), raw::word(&record->robust_len));
    uint64_t clear = 0;
    // Needs CONFIG_CHECKPOINT_RESTORE (every distribution has it); else describe_stopped_threads guesses.
    record->clear_tid = raw::call(SYS_prctl, PR_GET_TID_ADDRESS, raw::word(&clear)) == 0 ? clear : 0;
    SavedThread& saved = table()->saved[record->index];
    note_own_attributes(&saved.own);
    int32_t offset = table()->rseq_offset;
    uint32_t length = table()->rseq_length;
    uint64_t fs = record->upper_fs;
    if (find_rseq(fs, offset, length)) {
        record->rseq = fs + static_cast<uint64_t>(static_cast<int64_t>(offset));
        saved.rseq_length = length;
        table()->rseq_offset = offset;
        table()->rseq_length = length;
    } else {
        record->rseq = 0;
        saved.rseq_length = 0;
    }
}

// The signal may have been sent twice, and who has the handler from now on does not know it: glibc's for 33
// expects a setuid() under way and crashes.
FERMATA_NO_TLS void take_what_is_left() {
    static const timespec kNow = {0, 0};
    const raw::SignalSet borrowed =
        (g_setxid_sent != 0 ? raw::signal_bit(kSetxid) : 0) | raw::signal_bit(kStopSignal);
    while (raw::call(SYS_rt_sigtimedwait, raw::word(&borrowed), 0, raw::word(&kNow), 8) > 0) {
    }
}

// Runs on upper threads, in the lower half's code, with either thread pointer: no TLS, no libc.
FERMATA_NO_TLS void on_stop_signal(int, siginfo_t*, void* context) {
    const bool wanted = __atomic_load_n(&fermata_stop_wanted, __ATOMIC_SEQ_CST) != 0;
    if (!wanted && !somebody_open()) return;
    auto* frame = static_cast<ucontext_t*>(context);
    greg_t* registers = frame->uc_mcontext.gregs;
    int tid = raw::gettid();
    ThreadRecord* record = known_thread();
    if (record == nullptr || record->tid != tid) record = find_record(tid);
    if (record == nullptr) return;  // the agent gives it one and signals again
    mask_again(record->index, frame);
    if (!wanted) return;
    if (is_split() && !upper_address(reinterpret_cast<uint64_t>(__builtin_frame_address(0)))) {
        // The main thread between its two lives: the agent asks again.
        if (record->index == kMainIndex) return;
        // Its stack is lower: a thread that the MPI library made behind our back.
        note_lower_thread(tid);
        free_record(record);
        tell_agent();
        return;
    }
    auto rip = static_cast<uint64_t>(registers[REG_RIP]);
    bool at_stop_point = in_stop_point(rip);
    // Callbacks of the library are waited for: their frames stand on those of the lower half.
    const bool escapes = record->escape != nullptr && record->callbacks == 0 && !at_stop_point;
    const bool waited_for = !escapes && (record->half == Half::lower || record->in_mpi != 0 ||
                                         (lower_code(rip) && !at_stop_point));
    const uint64_t brk = escapes || at_stop_point || waited_for ? 0 : brk_around(rip);
    if (waited_for || (brk != 0 && !fail_again_in_brk(brk, registers))) {
        record->stop = 1;
        tell_agent();
        return;
    }
    SavedThread& saved = table()->saved[record->index];
    saved.restarted_call = -1;
    saved.escapes = escapes ? kInLibrary : kNotInLibrary;
    if (escapes) {
        // This process goes on where it is.
    } else if (at_stop_point) {
        auto* stack = reinterpret_cast<uint64_t*>(registers[REG_RSP]);
        if (rip >= reinterpret_cast<uint64_t>(fermata_stop_point_open)) {
            frame->uc_sigmask.__val[0] |= stack[-2] & fermata_stop_set;
        }
        registers[REG_RIP] = static_cast<greg_t>(*stack);
        registers[REG_RSP] += 8;
    } else {
        saved.restarted_call = rewind_interrupted(record->index, frame);
    }
    // A thread that never called MPI (the main one before MPI_Init, too) is known by its id only.
    saved.attached = known_thread() == record;
    uint64_t gs_base = read_gs();
    saved.gs_base = upper_address(gs_base) ? gs_base : table()->nobody;
    if (!escapes) record->upper_fs = read_fs();
    record->context = frame;
    __builtin_memcpy(&record->signal_mask, &frame->uc_sigmask, sizeof record->signal_mask);
    note_registrations(record);
    record->run = Run::stopped;
    std::atomic_thread_fence(std::memory_order_seq_cst);
    tell_agent();
    while (record->run == Run::stopped && __atomic_load_n(&fermata_stop_wanted, __ATOMIC_SEQ_CST) != 0)
        raw::futex_wait(&record->run, static_cast<uint32_t>(Run::stopped));
    exchange_run(record, Run::stopped, Run::running);
    if (saved.escapes == kComesBack) {
        bring_back(record);
        write_fs(record->upper_fs);
    }
    record->context = nullptr;
    take_what_is_left();
    undo_rewind_if_signalled(saved.restarted_call, frame);
}

FERMATA_NO_TLS void on_probe_signal(int, siginfo_t*, void* context) {
    g_layout = layout_of(read_frame(static_cast<ucontext_t*>(context)));
}

void set_handler(void (*handler)(int, siginfo_t*, void*), int number = kStopSignal) {
    raw::KernelSigaction action = {};
    action.handler = reinterpret_cast<uint64_t>(handler);
    // ONSTACK: small stacks (Go, fibres) have set an alternate one.
    action.flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK | raw::kSaRestorer;
    action.restorer = reinterpret_cast<uint64_t>(&fermata_stop_return);
    action.mask = raw::kAllSignals;
    raw::call(SYS_rt_sigaction, number, raw::word(&action), 0, 8);
}

uint64_t now_ns() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<uint64_t>(now.tv_sec) * 1000000000ull + static_cast<uint64_t>(now.tv_nsec);
}

struct Signalled {
    int tid;
    uint64_t when;
    uint64_t next;  // signal again not before
};
uint64_t g_stop_began;
std::vector<Signalled> g_signalled;  // agent only; empty while nothing is asked

raw::KernelSigaction g_setxid_action;
bool g_setxid_borrowed;

void borrow_setxid() {
    if (g_setxid_borrowed) return;
    raw::call(SYS_rt_sigaction, kSetxid, 0, raw::word(&g_setxid_action), 8);
    set_handler(on_stop_signal, kSetxid);
    g_setxid_borrowed = true;
}
void return_setxid() {
    if (!g_setxid_borrowed) return;
    raw::call(SYS_rt_sigaction, kSetxid, raw::word(&g_setxid_action), 0, 8);
    g_setxid_borrowed = false;
}

// Somebody may have taken our signal by the raw system call, as Go's run time does with all that libc does
// not keep for itself: ours for as long as the stop lasts.
void claim_stop_signal() {
    raw::KernelSigaction now = {};
    raw::call(SYS_rt_sigaction, kStopSignal, 0, raw::word(&now), 8);
    if (now.handler == reinterpret_cast<uint64_t>(&on_stop_signal)) return;
    table()->program_action = now;
    set_handler(on_stop_signal);
}
// A default or ignored action is not put back: our signal may still be on its way to a thread.
void return_stop_signal() {
    if (table()->program_action.handler > 1)
        raw::call(SYS_rt_sigaction, kStopSignal, raw::word(&table()->program_action), 0, 8);
    table()->program_action = {};
}

// How a thread in this system call is reached now: by our signal, by the borrowed one, or not by signals.
enum class Way { taken, setxid, traced };
Way way_to(int index, int tid, int call) {
    if (call == SYS_rt_sigtimedwait && awaits_stop_signal(index)) return Way::traced;
    uint64_t blocked = status_mask(task_file(tid, "status"), "SigBlk:");
    if ((blocked & raw::signal_bit(kStopSignal)) == 0) return Way::taken;
    return (blocked & raw::signal_bit(kSetxid)) == 0 ? Way::setxid : Way::traced;
}

void signal_thread(ThreadRecord* record, int tid, uint64_t now, std::vector<TracedThread>& masked) {
    auto known = std::find_if(g_signalled.begin(), g_signalled.end(), [&](auto& s) { return s.tid == tid; });
    if (known == g_signalled.end()) {
        g_signalled.push_back({tid, now, now});
        known = g_signalled.end() - 1;
    }
    if (now < known->next) return;
    // Again and again, ever more rarely: the signal may have met the thread where it could not be captured.
    uint64_t waited = now - known->when;
    known->next = now + std::clamp<uint64_t>(waited, 2'000'000, 50'000'000);
    int call = sample_system_call(record->index, tid);
    // Looked at when it does not come, and where one that waits for signals (also by a signalfd) would take
    // ours for one of the program's.
    Way way = Way::taken;
    if (waited > 4'000'000 || call == SYS_rt_sigtimedwait || call == SYS_read)
        way = way_to(record->index, tid, call);
    constexpr uint64_t kPause = 1'000'000'000;
    if (way == Way::traced) {
        // Inside MPI it comes to a stop point, which opens its mask.
        if (record->in_mpi == 0 && record->half == Half::upper) masked.push_back({tid, record->index});
        known->next = now + kPause / 5;
        return;
    }
    if (way == Way::setxid) {
        borrow_setxid();
        g_setxid_sent = 1;
        known->next = now + kPause;
    }
    raw::call(SYS_tgkill, raw::getpid(), tid, way == Way::setxid ? kSetxid : kStopSignal);
}

bool is_zombie(int tid) {
    std::string stat = task_file(tid, "stat");
    size_t at = stat.rfind(')');
    return at != std::string::npos && at + 2 < stat.size() && (stat[at + 2] == 'Z' || stat[at + 2] == 'X');
}

// One look at all threads: signals those that run, and says whether every one is captured.
struct Look {
    int threads = 0;
    std::vector<std::pair<int, ThreadRecord*>> open;
};
Look look_at_all() {
    Look look;
    uint64_t now = now_ns();
    int pid = raw::getpid();
    // The main thread comes last: the kernel gives it the process's signals as long as it takes them, and no
    // other thread shall meet an application's signal because of us.
    std::vector<int> tids = present_threads();
    std::partition(tids.begin(), tids.end(), [pid](int tid) { return tid != pid; });
    bool others_outside = false;
    std::vector<TracedThread> masked;
    for (int tid : tids) {
        if (is_lower_thread(tid)) continue;
        raw::SignalSet mask = raw::set_signal_mask(raw::kAllSignals);
        ThreadRecord* record = find_or_take_record(tid);
        raw::set_signal_mask(mask);
        if (record != nullptr && record->run == Run::stopped) {
            ++look.threads;
            continue;
        }
        if (tid == pid && is_zombie(tid)) {
            // pthread_exit in main: the group leader stays as a zombie.
            if (record != nullptr) free_record(record);
            table()->record[kMainIndex].run = Run::gone;
            continue;
        }
        ++look.threads;
        look.open.emplace_back(tid, record);
        if (record == nullptr) continue;
        record->stop = 1;
        // Those inside MPI are not waited for: they may stay there until this one has moved.
        constexpr uint64_t kPatience = 100'000'000;
        if (tid == pid && others_outside && now < g_stop_began + kPatience) continue;
        others_outside = others_outside || (record->in_mpi == 0 && record->half == Half::upper);
        signal_thread(record, tid, now, masked);
    }
    open_to_stop(std::move(masked));
    return look;
}

void want_stop() {
    if (fermata_stop_wanted != 0) return;
    collect_ended_threads();
    g_signalled.clear();
    g_stop_began = now_ns();
    g_setxid_sent = 0;
    forget_not_opened();
    claim_stop_signal();
    g_stop_count = g_stop_count + 1;
    __atomic_store_n(&fermata_stop_wanted, 1, __ATOMIC_SEQ_CST);
}

// Until the main thread has left the stop handler (or the restart), and with it taken the signals that came
// meanwhile.
void let_main_thread_go_first() {
    ThreadRecord& main = table()->record[kMainIndex];
    if (main.run != Run::stopped) return;
    uint64_t mask = main.signal_mask;
    exchange_run(&main, Run::stopped, Run::running);
    raw::futex_wake(&main.run);
    int others = 0;
    for (uint32_t i = 1; i < table()->high_water; ++i) others += table()->record[i].run == Run::stopped;
    if (others == 0) return;
    constexpr raw::SignalSet kUnblockable = raw::signal_bit(SIGKILL) | raw::signal_bit(SIGSTOP);
    if ((mask | kUnblockable) == raw::kAllSignals) return;  // it looks the same inside and outside
    int pid = raw::getpid();
    for (uint64_t end = now_ns() + 500'000'000; now_ns() < end;) {
        uint64_t blocked = status_mask(task_file(pid, "status"), "SigBlk:");
        // The agent blocks everything, so it sees what still waits for the process.
        raw::SignalSet waiting = 0;
        raw::call(SYS_rt_sigpending, raw::word(&waiting), 8);
        if ((blocked | kUnblockable) != raw::kAllSignals && (waiting & ~mask) == 0) return;
        timespec pause = {0, 50'000};
        nanosleep(&pause, nullptr);
    }
}

}  // namespace

void install_stop_handler() {
    raw::SignalSet mask = raw::set_signal_mask(raw::kAllSignals & ~raw::signal_bit(kStopSignal));
    set_handler(on_probe_signal);
    raw::call(SYS_tgkill, raw::getpid(), raw::gettid(), kStopSignal);
    set_handler(on_stop_signal);
    raw::set_signal_mask(mask & ~raw::signal_bit(kStopSignal));
}

const XstateLayout& own_xstate_layout() { return g_layout; }

void ask_all_to_stop() {
    want_stop();
    look_at_all();
}

StopReport stop_all(uint64_t deadline_ns) {
    want_stop();
    StopReport report;
    bool quiet =
        false;  // the last look found nothing open; a second one proves that no thread was made meanwhile
    for (;;) {
        serve_donor_requests();
        uint32_t seen = g_progress.load(std::memory_order_acquire);
        claim_stop_signal();
        Look look = look_at_all();
        report.threads = look.threads;
        if (look.open.empty()) {
            if (quiet) {
                return_setxid();  // the image shall hold the application's action
                report.stopped = true;
                return report;
            }
            quiet = true;
            continue;
        }
        quiet = false;
        uint64_t now = now_ns();
        if (now >= deadline_ns) {
            for (auto& [tid, record] : look.open) report.missing.push_back(why_not_stopped(tid, record));
            return report;
        }
        timespec pause = {0, 1'000'000};
        raw::futex_wait(&g_progress, seen, &pause);
    }
}

void resume_all() {
    return_setxid();
    return_stop_signal();
    // Counted at both ends: a wait that began after the stop was asked, and was interrupted by it, must see a
    // change.
    g_stop_count = g_stop_count + 1;
    __atomic_store_n(&fermata_stop_wanted, 0, __ATOMIC_SEQ_CST);
    uint32_t used = table()->high_water;
    for (uint32_t i = 0; i < used; ++i) table()->record[i].stop = 0;
    let_main_thread_go_first();
    for (uint32_t i = 0; i < used; ++i) {
        ThreadRecord& record = table()->record[i];
        exchange_run(&record, Run::stopped, Run::running);
        raw::futex_wake(&record.run);
    }
    g_signalled.clear();
}

void bring_all_back() {
    ThreadTable& all = *table();
    for (uint32_t i = 0; i < all.high_water; ++i)
        if (all.record[i].run == Run::stopped && all.saved[i].escapes == kInLibrary)
            all.saved[i].escapes = kComesBack;
}

bool stop_wanted() noexcept { return fermata_stop_wanted != 0; }
const volatile uint32_t* stop_count() noexcept { return &g_stop_count; }

namespace {

// The tid's place in libc's thread descriptor: where the kernel clears it at exit (glibc:
// set_tid_address(&pd->tid)), else the first word behind the thread pointer that holds the tid of every
// thread.
int32_t find_tid_offset() {
    std::vector<ThreadRecord*> threads;
    for (uint32_t i = 0; i < table()->high_water; ++i)
        if (table()->record[i].run == Run::stopped && table()->record[i].upper_fs != 0)
            threads.push_back(&table()->record[i]);
    auto holds = [&](int64_t offset) {
        for (ThreadRecord* record : threads)
            if (*reinterpret_cast<const int32_t*>(record->upper_fs + static_cast<uint64_t>(offset)) !=
                record->tid)
                return false;
        return true;
    };
    if (threads.empty()) return 0;
    for (ThreadRecord* record : threads) {
        if (record->clear_tid == 0) continue;
        auto offset = static_cast<int64_t>(record->clear_tid - record->upper_fs);
        if (offset > 0 && offset < 4096 && holds(offset)) return static_cast<int32_t>(offset);
    }
    constexpr int64_t kGlibc236 = 0x2d0;
    if (holds(kGlibc236)) return kGlibc236;
    for (int64_t offset = 16; offset < 2048; offset += 4)
        if (holds(offset)) return static_cast<int32_t>(offset);
    return 0;
}

}  // namespace

std::vector<std::string> describe_stopped_threads() {
    std::vector<std::string> warnings;
    ThreadTable& all = *table();
    all.saved_pid = raw::getpid();
    all.xstate = g_layout;
    all.tid_offset = find_tid_offset();
    if (all.tid_offset == 0)
        warnings.push_back(
            "the C library's thread descriptors do not show the thread id: pthread_join and pthread_kill may "
            "fail after a "
            "restart");
    for (uint32_t i = 0; i < all.high_water; ++i) {
        ThreadRecord& record = all.record[i];
        SavedThread& saved = all.saved[i];
        if (record.run != Run::stopped) continue;
        saved.old_tid = record.tid;
        saved.tid_in_descriptor = 0;
        if (all.tid_offset != 0 && record.upper_fs != 0) {
            uint64_t place = record.upper_fs + static_cast<uint64_t>(all.tid_offset);
            saved.tid_in_descriptor = *reinterpret_cast<const int32_t*>(place) == record.tid;
            if (record.clear_tid == 0 && saved.tid_in_descriptor != 0) record.clear_tid = place;
        }
        std::string name = task_file(record.tid, "comm");
        std::memset(saved.name, 0, sizeof saved.name);
        if (!name.empty() && name.back() == '\n') name.pop_back();
        std::memcpy(saved.name, name.data(), std::min(name.size(), sizeof saved.name - 1));
        sched_param parameters = {};
        saved.policy = sched_getscheduler(record.tid);
        sched_getparam(record.tid, &parameters);
        saved.priority = parameters.sched_priority;
        errno = 0;
        saved.nice = getpriority(PRIO_PROCESS, static_cast<id_t>(record.tid));
        if (saved.policy == 6 /* SCHED_DEADLINE */) {
            warnings.push_back("thread " + std::string(saved.name) +
                               " has deadline scheduling: it comes back with the normal policy");
            saved.policy = 0;
        }
    }
    make_room_for_held_mutexes();
    return warnings;
}

}  // namespace fermata::split::threads
