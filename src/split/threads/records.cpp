#include "split/threads/records.h"

#include <dirent.h>
#include <elf.h>
#include <fcntl.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "split/gate.h"
#include "split/threads/fs_below.h"
#include "split/threads/raw.h"

namespace fermata::split::threads {
namespace {

constexpr uint32_t kTableVersion = 4;

ThreadTable* g_table;
bool g_split = true;
// Held for a few instructions, with all signals blocked; never across a wait.
std::atomic<uint32_t> g_lock;

struct Locked {
    Locked() {
        while (g_lock.exchange(1, std::memory_order_acquire) != 0) raw::call(SYS_sched_yield);
    }
    ~Locked() { g_lock.store(0, std::memory_order_release); }
};

// Kernel ids of lower threads. Zero = empty. A process with more lower threads than this has other troubles.
constexpr int kMaxLower = 4096;
std::atomic<int32_t> g_lower[kMaxLower];
std::atomic<int32_t> g_lower_used;

}  // namespace

std::string unsupported_machine() {
    constexpr unsigned long kHwcap2Fsgsbase = 1 << 1;
    if ((getauxval(AT_HWCAP2) & kHwcap2Fsgsbase) == 0)
        return "this kernel does not let programs set the FS base (FSGSBASE: needs Linux 5.9 or newer on a "
               "CPU "
               "that has it, and no `nofsgsbase` on the kernel command line)";
    return {};
}

void set_split(bool split) { g_split = split; }
bool is_split() noexcept { return g_split; }

ThreadTable* table() { return g_table; }

ThreadTable* create_table() {
    // Raw: the lower half's mmap() would put it outside of the window.
    long address = raw::call(SYS_mmap, 0, sizeof(ThreadTable), PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (address < 0 && address > -4096) {
        std::fprintf(stderr, "fermata: no memory for the thread table (%zu bytes): %s\n", sizeof(ThreadTable),
                     std::strerror(static_cast<int>(-address)));
        std::abort();
    }
    auto* made = reinterpret_cast<ThreadTable*>(address);
    made->magic = kTableMagic;
    made->version = kTableVersion;
    for (int i = 0; i < kMaxThreads; ++i) {
        made->record[i].index = i;
    }
    g_table = made;
    ThreadRecord* main = find_or_take_record(raw::gettid());
    set_lower_side(main, read_fs());
    return made;
}

std::string adopt_table(ThreadTable* found) {
    if (found->magic != kTableMagic || found->version != kTableVersion)
        return "the image's thread table is of another version of Fermata: restart with the version that "
               "wrote it";
    g_table = found;
    ThreadRecord& agent = found->record[kAgentIndex];
    agent = {};
    agent.index = kAgentIndex;
    return {};
}

void set_lower_side(ThreadRecord* record, uint64_t lower_fs) noexcept {
    record->fs_below = lower_fs == 0 ? 0 : threads::fs_below(lower_fs);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    record->lower_fs = lower_fs;
    // Crossings may begin to write FS at this moment (a library that needs it is being loaded): either the
    // thread that says so sees lower_fs in the table, or this one sees that they do.
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (threads::fs_below(lower_fs) == lower_fs) record->fs_below = lower_fs;
}

ThreadRecord* find_record(int tid) noexcept {
    uint32_t used = g_table->high_water;
    for (uint32_t i = 0; i < used; ++i) {
        ThreadRecord& record = g_table->record[i];
        if (record.tid == tid && record.run != Run::free && record.run != Run::gone) return &record;
    }
    return nullptr;
}

ThreadRecord* find_or_take_record(int tid) noexcept {
    Locked locked;
    if (ThreadRecord* found = find_record(tid)) return found;
    for (uint32_t i = 0; i < static_cast<uint32_t>(kAgentIndex); ++i) {
        ThreadRecord& record = g_table->record[i];
        if (record.run != Run::free) continue;
        record.upper_fs = record.lower_fs = 0;
        record.fs_below = 0;
        record.half = Half::upper;
        record.mode = 0;
        record.in_mpi = 0;
        record.stop = 0;
        record.context = nullptr;
        record.robust_list = record.robust_len = record.clear_tid = record.rseq = 0;
        record.waiting_in = nullptr;
        record.waiting_for = -1;
        record.callbacks = 0;
        record.slot = nullptr;
        record.tid = tid;
        record.run = Run::running;
        if (i >= g_table->high_water) g_table->high_water = i + 1;
        return &record;
    }
    return nullptr;
}

void free_record(ThreadRecord* record) noexcept {
    Locked locked;
    record->upper_fs = record->lower_fs = 0;
    record->fs_below = 0;
    record->tid = 0;
    // The main thread's record is never given to another thread.
    record->run = record->index == kMainIndex ? Run::gone : Run::free;
}

void note_lower_thread(int tid) noexcept {
    if (is_lower_thread(tid)) return;
    for (int i = 0; i < kMaxLower; ++i) {
        int32_t empty = 0;
        if (g_lower[i].compare_exchange_strong(empty, tid)) {
            int32_t used = g_lower_used.load();
            while (used <= i && !g_lower_used.compare_exchange_weak(used, i + 1)) {
            }
            return;
        }
    }
}

void forget_lower_thread(int tid) noexcept {
    int used = g_lower_used.load();
    for (int i = 0; i < used; ++i) {
        int32_t expected = tid;
        if (g_lower[i].compare_exchange_strong(expected, 0)) return;
    }
}

bool is_lower_thread(int tid) noexcept {
    int used = g_lower_used.load(std::memory_order_acquire);
    for (int i = 0; i < used; ++i)
        if (g_lower[i].load(std::memory_order_relaxed) == tid) return true;
    return false;
}

std::vector<int> present_threads() {
    std::vector<int> tids;
    DIR* tasks = opendir("/proc/self/task");
    if (tasks == nullptr) return tids;
    while (dirent* entry = readdir(tasks)) {
        int tid = std::atoi(entry->d_name);
        if (tid > 0) tids.push_back(tid);
    }
    closedir(tasks);
    return tids;
}

void note_present_threads() {
    int main = raw::getpid();
    for (int tid : present_threads())
        if (tid != main) note_lower_thread(tid);
}

}  // namespace fermata::split::threads
