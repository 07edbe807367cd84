#include "split/threads/donors.h"

#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <vector>

#include "split/gate.h"
#include "split/threads/bridge_text.h"
#include "split/threads/raw.h"
#include "split/threads/records.h"
#include "split/threads/rseq.h"

namespace fermata::split::threads {
namespace {

int g_bell = -1;

// Words between an upper thread and the agent while a donor is made; by record index.
enum Wish : uint32_t { kNothing = 0, kWanted = 1, kServed = 2 };
std::atomic<uint32_t> g_wish[kMaxThreads];
std::atomic<uint32_t> g_wishes;  // number of open ones, so that the agent's look is cheap

// Agent and, at restart, the lower main thread.
std::mutex g_donors_lock;
struct Donor {
    uint64_t fs;
    int index;  // record it serves, -1 = free
};
std::vector<Donor> g_donors;

struct Birth {
    std::atomic<uint32_t> ready{0};
    uint64_t fs = 0;
};

void* park(void* argument) {
    auto* birth = static_cast<Birth*>(argument);
    note_lower_thread(raw::gettid());
    // The donor's rseq area would tell borrowing threads this thread's CPU.
    unregister_own_rseq();
    birth->fs = read_fs();
    birth->ready.store(1, std::memory_order_release);
    raw::futex_wake(&birth->ready);
    static const uint32_t never = 0;
    for (;;) raw::futex_wait(&never, 0);
    return nullptr;
}

uint64_t make_donor() {
    // Only the TLS block and a little stack for the parked frame; the stack is not used by borrowing threads.
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setguardsize(&attributes, 0);
    pthread_attr_setstacksize(&attributes, 256 << 10);
    raw::SignalSet mask = raw::set_signal_mask(raw::kAllSignals);
    auto birth = new Birth;  // kept: the donor may still be in its wake-up call
    pthread_t thread;
    int error = pthread_create(&thread, &attributes, park, birth);
    raw::set_signal_mask(mask);
    pthread_attr_destroy(&attributes);
    if (error != 0) {
        delete birth;
        return 0;
    }
    while (birth->ready.load(std::memory_order_acquire) == 0) raw::futex_wait(&birth->ready, 0);
    return birth->fs;
}

bool thread_exists(int tid) {
    constexpr long kNoSuchProcess = -3;
    return raw::call(SYS_tgkill, raw::getpid(), tid, 0) != kNoSuchProcess;
}

}  // namespace

void make_bell(int min_fd) {
    int made = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (made >= 0 && made < min_fd) {
        int high = static_cast<int>(raw::call(SYS_fcntl, made, 1030 /* F_DUPFD_CLOEXEC */, min_fd));
        close(made);
        made = high;
    }
    if (made < 0) {
        std::fprintf(
            stderr,
            "fermata: no descriptor above %d for the agent's eventfd: raise the hard limit of open files\n",
            min_fd);
        std::abort();
    }
    g_bell = made;
}

int bell_fd() { return g_bell; }

FERMATA_BRIDGE_TEXT void poke_agent() noexcept {
    uint64_t one = 1;
    raw::call(SYS_write, g_bell, raw::word(&one), sizeof one);
}

void answer_bell() {
    uint64_t rings;
    raw::call(SYS_read, g_bell, raw::word(&rings), sizeof rings);
}

void enter_agent() {
    raw::set_signal_mask(raw::kAllSignals);
    int tid = raw::gettid();
    note_lower_thread(tid);
    ThreadRecord& record = table()->record[kAgentIndex];
    record.tid = tid;
    record.half = Half::lower;
    record.upper_fs = read_fs();
    set_lower_side(&record, record.upper_fs);
    record.run = Run::running;
    be_known_as(&record);
}

uint64_t donor_for(ThreadRecord* record) {
    auto take = [record]() -> uint64_t {
        std::lock_guard lock(g_donors_lock);
        for (Donor& donor : g_donors)
            if (donor.index == record->index) return donor.fs;
        for (Donor& donor : g_donors) {
            if (donor.index >= 0) continue;
            donor.index = record->index;
            return donor.fs;
        }
        return 0;
    };
    if (uint64_t fs = take()) return fs;
    collect_ended_threads();
    if (uint64_t fs = take()) return fs;
    uint64_t fs = make_donor();
    if (fs == 0) return 0;
    std::lock_guard lock(g_donors_lock);
    g_donors.push_back({fs, record->index});
    return fs;
}

void serve_donor_requests() {
    if (g_wishes.load(std::memory_order_acquire) == 0) return;
    uint32_t used = table()->high_water;
    for (uint32_t i = 0; i < used; ++i) {
        if (g_wish[i].load(std::memory_order_acquire) != kWanted) continue;
        ThreadRecord& record = table()->record[i];
        // 0 = no memory or no thread allowed: the waiting thread says so.
        set_lower_side(&record, donor_for(&record));
        g_wishes.fetch_sub(1);
        g_wish[i].store(kServed, std::memory_order_release);
        raw::futex_wake(&g_wish[i]);
    }
}

void collect_ended_threads() {
    uint32_t used = table()->high_water;
    raw::SignalSet mask = raw::set_signal_mask(raw::kAllSignals);
    for (uint32_t i = 0; i < used; ++i) {
        ThreadRecord& record = table()->record[i];
        // A stopped thread exists; at restart its tid is still the old one.
        if (record.run != Run::running || record.tid == 0 || thread_exists(record.tid)) continue;
        std::lock_guard lock(g_donors_lock);
        for (Donor& donor : g_donors)
            if (donor.index == record.index) donor.index = -1;
        free_record(&record);
    }
    raw::set_signal_mask(mask);
}

int donor_count() {
    std::lock_guard lock(g_donors_lock);
    return static_cast<int>(g_donors.size());
}

namespace {
[[noreturn]] FERMATA_BRIDGE_TEXT void give_up(const char* line, size_t size) noexcept {
    raw::call(SYS_write, 2, raw::word(line), static_cast<long>(size));
    for (;;) raw::call(SYS_exit_group, 70);
}
}  // namespace

FERMATA_BRIDGE_TEXT ThreadRecord* attach(uint64_t upper_fs) noexcept {
    // Signals wait: the thread must not be captured, nor run a handler that uses MPI, half way.
    raw::SignalSet mask = raw::set_signal_mask(raw::kAllSignals);
    ThreadRecord* record = find_or_take_record(raw::gettid());
    static const char kFull[] =
        "fermata: more than 1023 threads use MPI or wait to be saved: that is the limit\n";
    if (record == nullptr) give_up(kFull, sizeof kFull - 1);
    if (record->lower_fs == 0) {
        std::atomic<uint32_t>& wish = g_wish[record->index];
        wish.store(kWanted, std::memory_order_release);
        g_wishes.fetch_add(1);
        poke_agent();
        static const timespec kSecond = {1, 0};
        for (int seconds = 0; wish.load(std::memory_order_acquire) != kServed;) {
            static const char kMute[] = "fermata: the agent thread of this rank does not answer: giving up\n";
            if (raw::futex_wait(&wish, kWanted, &kSecond) == -110 /* ETIMEDOUT */ && ++seconds > 120)
                give_up(kMute, sizeof kMute - 1);
            poke_agent();
        }
        wish.store(kNothing, std::memory_order_relaxed);
        static const char kNone[] =
            "fermata: no thread could be made to serve an MPI thread: raise the limit of processes\n";
        if (record->lower_fs == 0) give_up(kNone, sizeof kNone - 1);
    }
    record->half = Half::upper;
    record->upper_fs = upper_fs;
    be_known_as(record);
    raw::set_signal_mask(mask);
    return record;
}

}  // namespace fermata::split::threads
