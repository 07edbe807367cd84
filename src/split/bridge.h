// The two halves of a rank meet here and nowhere else.
//
// Everything below is plain data and function pointers: the halves have different libcs, allocators and TLS.
// A pointer that crosses is only valid on the side named in its comment. Both halves are built together; the
// layout hash refuses a mixed pair.
#pragma once

#include <cstddef>
#include <cstdint>

#include "split/vdso/table.h"

namespace fermata::mpi {
struct Table;  // generated: one entry per MPI function, standard-ABI values, real handles (fermata_table.h)
}

namespace fermata::split {

// Private auxv entry whose value is the address of the Bridge (lower memory) at first start.
inline constexpr unsigned long kAuxvBridge = 0x464d5441;
inline constexpr uint32_t kBridgeVersion = 17;

struct NotedFiles;    // noted_files.h
struct OwnState;      // own_state.h
struct PrivateFiles;  // private_files.h
struct PrivateWish;
struct EndedChildren;  // ended_children.h
namespace ids {
struct Table;  // ids/table.h
}

enum class Half : uint16_t { upper = 0, lower = 1 };

// The activity of a thread of the upper half, as the agent needs to know it.
enum class Run : uint32_t {
    free = 0,     // record not in use
    running = 1,  // anywhere
    stopped = 2,  // captured: `context` is valid and the thread waits in the stop handler
    gone = 3,     // its kernel thread has ended
};

// GS holds the thread pointer of the lower half: in an upper thread, that of its TLS donor. The thread
// control block there has a word for the thread's record: unused_vgetcpu_cache[0] of glibc's tcbhead_t (2.36,
// sysdeps/x86_64/nptl/tls.h).
inline constexpr uint64_t kRecordInTcb = 0x38;

// Registers of a thread at a place to which it can be brought back (front/logged/escape.h).
struct EscapePoint {
    uint64_t rbx, rbp, r12, r13, r14, r15, rsp, rip;
};

// One per upper thread, reachable through GS without TLS. Lives in upper memory (in the window), so its
// address survives a restart; lower_fs, tid and donor are refreshed there.
struct alignas(64) ThreadRecord {
    // One cache line: all that a call reads and writes.
    uint64_t upper_fs;  // thread pointer of the upper half
    uint64_t lower_fs;  // thread pointer of this thread's TLS donor in the lower half
    // The value of FS in the lower half; 0: as it is (split/thread_pointer/redirect.h).
    volatile uint64_t fs_below;
    // These three are one word, so that one store changes them: place_of() in gate.h.
    volatile Half half;      // which half the code of this thread runs in
    volatile uint16_t mode;  // the front's own: a Mode of front/core/call.h
    // Depth of MPI wrappers; >0: the stop handler must not capture here, see StopPoint.
    volatile uint32_t in_mpi;
    volatile uint32_t stop;  // agent: 1 = please stop at the next possible point
    int32_t index;           // position in the record table; 0 is the main thread
    // The call that the thread waits in inside MPI, for diagnosis: function name (upper string) and peer
    // world rank (-1 = none, -2 = any).
    const char* volatile waiting_in;
    void* slot;  // the front's own: the thread's clock::Slot, once it has one
    volatile int32_t waiting_for;
    // Callbacks of the lower half that this thread is inside: it cannot stop, their frames cannot be saved.
    uint32_t callbacks;

    volatile Run run;
    int32_t tid;           // kernel thread id (refreshed at restart)
    void* context;         // ucontext_t* on this thread's own stack while stopped
    uint64_t signal_mask;  // the application's mask while stopped
    uint64_t robust_list;  // get_robust_list head and length
    uint64_t robust_len;
    uint64_t clear_tid;  // clear_child_tid address, 0 = unknown
    uint64_t rseq;       // registered rseq area, 0 = none
    // Where the thread is brought back to in a new process when the stop finds it in the library; null: it is
    // waited for.
    EscapePoint* volatile escape;
};
static_assert(sizeof(ThreadRecord) == 128 &&
              offsetof(ThreadRecord, in_mpi) == offsetof(ThreadRecord, half) + 4 &&
              offsetof(ThreadRecord, run) == 64);

inline constexpr int kMaxThreads = 1024;

// The batch system's process on this node that has started this rank, slurmstepd, and signals from it that
// were held back from the program (front/posix/warden.h).
struct Warden {
    int32_t pid;  // 0: none
    // A bit per signal, number 1 is bit 0. Those that came since the agent looked:
    volatile uint64_t held;
    // Those that stay blocked until the front can hold them back, and are not blocked for the program.
    uint64_t to_unblock;
};
// Signals that are held back: the end of the job is near, or a checkpoint is wanted (`fermata run` takes them
// so).
inline constexpr uint64_t kWarnings = uint64_t{1} << 14 | uint64_t{1} << 9;  // SIGTERM, SIGUSR1

// Ends of connections that the library below has been told of (split/fds/connections.h): what it completes
// since may be no result. Changed and read atomically.
struct Connections {
    uint32_t lost;     // as by a peer's death; and libraries close connections that they do not need
    uint32_t cleared;  // so many they were when all ranks were seen to live
    uint32_t broken;   // by the network: nothing clears these
};

// Lower half -> upper half. Lower memory; the front keeps the only pointer to it and the lower half replaces
// that pointer at restart (UpperServices::bridge).
struct Bridge {
    uint32_t version;    // kBridgeVersion
    uint32_t interface;  // interface_version() (tools/interface.py); refuses mixed builds
    const mpi::Table* mpi;

    // Gives the calling thread (thread pointer upper_fs, not yet known) a record with a TLS donor and points
    // GS at it. Called in upper context; uses no TLS. Blocks until the agent has made the donor. Never null.
    ThreadRecord* (*attach)(uint64_t upper_fs) noexcept;
    // The calling thread offers itself to be stopped: in_mpi is 0, no lock is held. Returns after resume or
    // restart, at once if nothing was asked. Upper context.
    void (*stop_point)() noexcept;
    // Wakes the agent (it looks at UpperServices::outbox and ::ready). Any context, no TLS.
    void (*poke_agent)() noexcept;
    // Tells the root that this rank reached MPI_Finalize and waits for no answer; `finalize_released` turns 1
    // once all ranks have arrived. Until then the rank stays checkpointable. Any context, no TLS.
    void (*arrive_finalize)() noexcept;
    const volatile uint32_t* finalize_released;
    // The real MPI_Finalize, once all ranks were released (or at exit of a program that never called
    // MPI_Init). Lower context: cross first. No entry of the table may be called afterwards, and no
    // checkpoint may start.
    void (*finish_mpi)() noexcept;
    // The program leaves by exit(code) and has not called MPI_Finalize: returns once the node daemon has been
    // told, or after a moment. Any context, no TLS.
    void (*leaves)(int code) noexcept;
    // One line to the user (stderr of the job and log); no TLS.
    void (*warn)(const char* line) noexcept;
    // One line, then the whole job ends with `code`; never returns.
    void (*fatal)(const char* line, int code) noexcept;
    // The front registers itself once, from its constructor.
    void (*register_upper)(struct UpperServices* upper) noexcept;

    // How often this process has stopped its threads: an interposer of a waiting call compares it to tell an
    // EINTR that the stop signal caused from one that belongs to the application.
    const volatile uint32_t* stop_count;

    // Facts of the job.
    int32_t world_rank;
    int32_t world_size;
    int32_t thread_level;     // what the lower half's MPI_Init_thread provided (standard ABI value)
    uint32_t restarted;       // how many restarts lie behind this process
    const char* program;      // absolute path of the application (lower string)
    const char* mpi_library;  // "openmpi" or "mpich"
    const char* protocol;     // "cc-d", "cc", "2pc" (lower string); null or empty: the default
    uint64_t os_page;         // bytes
    // RealComm: a duplicate of MPI_COMM_WORLD on which nobody pulls, for what has to talk while it makes
    // communicators.
    uint64_t private_world;
    // Folders that were moved since the checkpoint, "/old=/new:…" (lower string), or empty.
    const char* moved;

    // Which descriptors the program does not know of: in this process, not in its children, numbers from
    // `first_lower` on whose bit in `lower_owned` is set (bit 0 is `first_lower`; null: none).
    int32_t process;
    int32_t first_lower;
    int32_t lower_count;  // bits
    const uint64_t* lower_owned;
    // Preloaded into programs that the application starts (lower string); null: it cannot be.
    const char* guard_library;
    Warden* warden;
    // 1: the front keeps a message log (docs/internals/message-log.md), so that its ranks can stop anywhere.
    uint32_t message_log;
    // This process is a rank's copy and cannot follow any more: one line, then it ends.
    void (*end_copy)(const char* line) noexcept;
    // Makes what such a process writes instead of the file that `real` has open (-1: it has no name any
    // more), of `size` bytes. A descriptor of the lower half, -1: there is none. `real` is closed.
    int (*shadow)(int real, int64_t size) noexcept;
    // Finds what the front needs to listen to the clocks; called by the agent.
    FermataVdsoDoors (*vdso)() noexcept;
    // As `shadow`, of a file that the program both reads and writes, or appends to.
    int (*private_file)(const PrivateWish& wish) noexcept;
    // This process is a copy that lives from now on: the program gets such files themselves. -1: it cannot,
    // and the job ends.
    int (*take_private_files)() noexcept;
    // How much of its message log the front keeps in memory, and a file for the rest: a descriptor of the
    // lower half, or an error of the kernel's (below 0). `place`: where it is (lower string). No TLS.
    uint64_t log_bytes;
    int (*log_file)(const char** place) noexcept;
    const Connections* connections;
};

// A rank's message log, for whoever asks how the job is. Upper memory.
struct LogSize {
    volatile uint64_t held, spilled;  // bytes in memory, and in files
};

struct DrainReport {
    uint64_t sent;      // point-to-point messages handed to MPI since the job began, this rank
    uint64_t received;  // matched by the application or pulled, this rank
    uint64_t open;      // sends, and non-blocking collectives k <= T, that are not complete
};

// Upper half -> lower half. Lives in the front's data (upper memory, fixed address across restarts).
// Every function is called by the agent thread (or by the lower main thread at restart): *lower* thread
// pointer, so none may use the upper libc's malloc, stdio, errno or any TLS, nor wait for an upper thread.
struct UpperServices {
    uint32_t version;  // kBridgeVersion
    uint32_t interface;
    Bridge* bridge;   // the front's pointer to the lower half; rewritten at restart
    uint64_t nobody;  // GS base of threads that have no record

    // Clock messages. `inbox` takes one message from the tree: null, or why it is not acceptable (the
    // checkpoint has to be given up); `outbox` copies the next one for the tree and returns its size in
    // bytes, 0 when there is none.
    const char* (*inbox)(const void* bytes, size_t size) noexcept;
    size_t (*outbox)(void* bytes, size_t capacity) noexcept;
    // Re-evaluates the state (safe? demands due?) at time now_ns (CLOCK_MONOTONIC); may fill the outbox.
    void (*poll)(uint64_t now_ns) noexcept;

    // Freeze: after this every wrapper that waits, or is entered, offers a stop point and nothing new is
    // handed to MPI. Threads outside MPI are stopped by the agent's signal.
    void (*freeze)() noexcept;
    // Every rank is frozen: nobody hears of a completion any more. From now on the drain takes all messages,
    // before only those that no sender draws conclusions from.
    void (*take)() noexcept;
    // Must this checkpoint be given up, for a better one right after it? Null, or why.
    const char* (*give_up)() noexcept;
    // One round of the drain with all threads stopped or captive in a lower-half send: pull every message of
    // every live communicator, test all sends and collectives.
    void (*drain)(DrainReport* report) noexcept;
    // All ranks are frozen and drained, all threads stopped: asks the library for what only it knows (file
    // pointers) and completes accesses to windows, before memory is saved. Collective over all ranks. 0, or
    // an error class: the checkpoint cannot be taken now.
    int (*before_save)() noexcept;
    // After restart, on a fresh lower half, before any thread runs: make the real objects again. Collective
    // over all ranks. Returns 0, or an error with one line in `error`.
    int (*rebuild)(char* error, size_t size) noexcept;
    // The checkpoint is over (committed, or given up: the job goes on); restarted != 0 after a restart.
    void (*resume)(int restarted) noexcept;
    // May a checkpoint start? 0, or why not in `why` (e.g. inside MPI_Comm_spawn, connected processes).
    int (*refuses)(char* why, size_t size) noexcept;
    // Which call each thread waits in and for whom, for `fermata status`; text, one line per thread.
    size_t (*diagnosis)(char* text, size_t size) noexcept;
    // All objects of MPI of this rank, all threads stopped: split/mpi_objects.h. How many bytes they are;
    // written only where `capacity` holds them all.
    size_t (*describe)(void* records, size_t capacity) noexcept;
    // Where the application's command line stands, as one string behind the other (upper memory): what
    // /proc/self/cmdline shows.
    const char *command_line, *command_line_end;
    // Upper memory; null: the program has opened nothing for writing.
    NotedFiles* noted_files;
    // Words between the job and a program that saves its own state. Upper memory.
    OwnState* own_state;
    // Which process and threads the program takes itself for. Upper memory.
    ids::Table* ids;
    // A system call with the program's numbers of processes and threads: result and arguments are the
    // kernel's otherwise. For calls that go past libc (split/ids/go_calls.h): general registers only, no TLS.
    long (*raw_call)(long number, long a, long b, long c, long d, long e, long f) noexcept;

    // ---- jobs with a message log; all threads stand

    // Counts of this rank for the exchange (replay::Said, in the form of replay/wire_form.h). How many bytes
    // they are; written only where `capacity` holds them all.
    size_t (*log_said)(void* bytes, size_t capacity) noexcept;
    // In the new process, before `rebuild`: what the exchange says (replay::Orders). Null, or why they cannot
    // be followed.
    const char* (*log_orders)(const void* bytes, size_t size) noexcept;
    // All ranks are rebuilt: what the program waits for may be told again. Before `resume`.
    void (*log_go)(uint32_t epoch) noexcept;
    // A child that is made now leads, and this process follows it: null, or why not.
    const char* (*log_begin_copy)() noexcept;
    // This process is the copy from now on. (To the one that leads, at any time: its copy has ended.)
    void (*log_be_copy)() noexcept;
    void (*log_copy_gone)() noexcept;
    // Upper memory.
    PrivateFiles* private_files;
    // The same of a copy on another node: its stream is in the memory of this descriptor, which the node
    // daemon maps, too. The first comes before the image of this rank, the second in the process that has
    // loaded it, before `rebuild`.
    const char* (*log_begin_copy_elsewhere)(int descriptor) noexcept;
    const char* (*log_be_copy_elsewhere)(int descriptor) noexcept;
    const LogSize* log_size;

    // ---- since version 17

    // How children of the program have ended. Upper memory.
    EndedChildren* ended_children;
};

}  // namespace fermata::split
