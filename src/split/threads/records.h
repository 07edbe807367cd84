// The table of thread records: one ThreadRecord (bridge.h) per upper thread, in upper memory.
//
// The table is a plain mapping made with the raw system call, so that it lands in the window, belongs to the
// image and keeps its address over a restart. State that belongs to one incarnation of the process only
// (donors, what a thread was doing when it was asked to stop) is kept beside it in lower memory, by record
// index.
//
// Record 0 is the main thread. Record kAgentIndex is the agent: `half` stays lower for ever, so that upper
// code run by the agent crosses straight through.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "split/bridge.h"
#include "split/threads/raw.h"

namespace fermata::split::threads {

// The signal that stops upper threads. The upper half's interposers (src/front/posix) hide it from the
// application.
inline constexpr int kStopSignal = 64;

inline constexpr int kMainIndex = 0;
inline constexpr int kAgentIndex = kMaxThreads - 1;

inline constexpr uint64_t kTableMagic = 0x31626154646d46ull;

// Attributes that only the thread itself can ask the kernel for, and set again. Filled by the stop handler.
struct OwnAttributes {
    static constexpr int kNodeWords = 16;  // NUMA nodes that a kernel may know: 1024
    int32_t io_priority;                   // ioprio_get; 0 = follows nice
    int32_t timer_slack;                   // ns, 0 = unknown
    static constexpr int32_t kLaunchers = -1;
    int32_t death_signal;       // PR_SET_PDEATHSIG; kLaunchers = as the launcher of this process has set it
    int32_t secure_bits;        // PR_SET_SECUREBITS, PR_SET_KEEPCAPS
    int32_t no_new_privileges;  //
    int32_t keyrings;           // 1: a keyring of the thread, 2: of the process
    int32_t session_keyring;    // its number
    int32_t memory_policy;      // set_mempolicy's mode, -1 = unknown
    uint64_t memory_nodes[kNodeWords];  // set_mempolicy's nodes
};

// State of a thread beside its registers and memory; filled while it is stopped, used at restart.
struct SavedThread {
    char name[16];     // /proc/self/task/T/comm
    int32_t policy;    // sched_getscheduler; -1 = unknown
    int32_t priority;  // sched_param
    int32_t nice;      //
    int32_t pad;
    uint64_t pending;  // signals directed at this thread and blocked (no siginfo)
    uint32_t rseq_length;
    uint32_t attached;           // had a TLS donor
    int32_t old_tid;             // when it was saved; record->tid is refreshed at restart
    uint32_t tid_in_descriptor;  // *(upper_fs + tid_offset) was its tid: patch it
    // A system call that the stop signal interrupted is to be issued again when the thread goes on
    // (restarted_call is its number, -1 = none); undone when an application's signal arrived meanwhile.
    int32_t restarted_call;
    uint32_t escapes;  // the stop has met it in the library: a new process begins at its EscapePoint
    uint64_t gs_base;  // of a thread that is not attached, if it lies in the upper half
    OwnAttributes own;
};

// One xsave component as CPUID leaf 0xd describes it: signal frames hold them at these places.
struct XstateComponent {
    uint32_t offset, size;
};
struct XstateLayout {
    uint64_t features;  // those in a signal frame of this process
    uint32_t size;      // bytes of the xsave area in a signal frame
    uint32_t spare;
    XstateComponent component[32];
};

// A mutex of the application that knows its owner by kernel id (recursive, error-checking, robust, PI), held
// while the process was saved: restart writes the new id.
struct HeldMutex {
    uint64_t address;
    int32_t record;      // of the owner
    uint32_t lock_word;  // the lock word itself holds the id, too (robust, PI)
};
inline constexpr uint32_t kMaxHeldMutexes = 512;

struct ThreadTable {
    uint64_t magic;
    uint32_t version;
    volatile uint32_t high_water;  // indexes below this have been used at least once (the agent's excepted)
    int32_t tid_offset;   // of the tid in libc's thread descriptor, from the thread pointer; 0 = unknown
    int32_t rseq_offset;  // of the rseq area, from the thread pointer; valid if rseq_length != 0
    uint32_t rseq_length;
    int32_t saved_pid;  // the process that wrote the image
    uint64_t nobody;    // UpperServices::nobody
    // The program's own for our signal, by the raw system call, while ours is there: handler 0 = none.
    raw::KernelSigaction program_action;
    uint32_t held_count;
    HeldMutex held[kMaxHeldMutexes];
    XstateLayout xstate;
    SavedThread saved[kMaxThreads];
    ThreadRecord record[kMaxThreads];
};

// Can this machine run the split at all? Empty, or one line (FSGSBASE is off: kernel before 5.9 or
// `nofsgsbase`).
std::string unsupported_machine();

// First start: makes the table (raw mmap) and record 0 for the calling thread, whose own thread pointer
// becomes the main thread's lower_fs. Aborts the process when there is no memory. Call it after the address
// space was partitioned.
ThreadTable* create_table();
// Restart: the table came back with the image at `table`. Returns an empty string or why it cannot be used.
std::string adopt_table(ThreadTable* table);
// The table in use, or null.
ThreadTable* table();

// The record's TLS donor has this thread pointer; 0 = it has none. No TLS.
void set_lower_side(ThreadRecord* record, uint64_t lower_fs) noexcept;

// On the main thread, before MPI starts: what note_own_attributes asks for changes nothing from then on. A
// process that asks for the session keyring gets one where none is, and with it other credentials; and
// libibverbs' descriptors refuse writes (EACCES) of a process that has other credentials than when they were
// opened.
void settle_credentials() noexcept;

// The calling thread's own attributes. Any thread, no TLS, no libc.
// On the main thread, before the program runs: what the launcher has set is not the program's.
void note_launchers_death_signal() noexcept;
void note_own_attributes(OwnAttributes* own) noexcept;
void set_own_attributes(const OwnAttributes* own) noexcept;
// The new kernel id of the thread that had `old_tid` when it was saved; 0 = there is none.
int new_tid(int old_tid) noexcept;

// The record of a thread by its kernel id, or null. No TLS, no libc.
ThreadRecord* find_record(int tid) noexcept;
// The thread's record, or a free one made its own (run = running); null when all are taken. No TLS, no libc;
// the caller has all signals blocked (a lock is held inside).
ThreadRecord* find_or_take_record(int tid) noexcept;
// The thread has ended: its record is free again. Same conditions.
void free_record(ThreadRecord* record) noexcept;

// Lower-half threads are never stopped. Every thread that exists when the upper half starts, but the main
// one, is noted by `note_present_threads`; those made later by the lower half's pthread_create note
// themselves (or are noted by whoever made them). Any context, no TLS.
void note_lower_thread(int tid) noexcept;
void forget_lower_thread(int tid) noexcept;
bool is_lower_thread(int tid) noexcept;
void note_present_threads();
// The kernel ids of all threads of this process. Lower context (allocates).
std::vector<int> present_threads();

// Whether the address space is split (split/address/window.h): false only in unit tests, where code and
// stacks of both kinds of threads lie anywhere.
void set_split(bool split);
bool is_split() noexcept;

}  // namespace fermata::split::threads
