// Stopping and resuming the upper threads of this process.
//
// The agent signals every upper thread with kStopSignal. The handler captures a thread that runs plain upper
// code: its registers are in the signal frame on its own stack (with the full xsave area), the thread waits
// in the handler. A thread inside an MPI wrapper or in the lower half is only told (record->stop = 1); its
// wrapper offers stop_point(). A frame never returns into lower code, so a restart may continue it with
// rt_sigreturn.
//
// A system call that the signal interrupted is issued again where that is exact (waits without a timeout,
// with an absolute one, or whose remaining time the kernel wrote back), so that the application does not see
// EINTR.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "split/bridge.h"

namespace fermata::split::threads {

// glibc's own helper threads (timers with SIGEV_THREAD, aio, mq_notify) block every signal but this one, out
// of reach of our interposers. The signal is borrowed for them while a stop is under way; its own use is
// setuid() in threaded programs.
inline constexpr int kSetxid = 33;

// Installs the stop handler, and learns the size of a signal frame's xsave area. Call before the upper half
// runs, at first start and at restart, after create_table or adopt_table.
void install_stop_handler();

struct NotStopped {
    int tid = 0;
    int index = -1;     // record, -1 = none
    std::string where;  // a phrase of not_stopped.h
};
struct StopReport {
    bool stopped = false;             // every upper thread is captured
    int threads = 0;                  // upper threads seen
    std::vector<NotStopped> missing;  // when not
};

// Agent only. Stops every upper thread; serves donor requests meanwhile. On failure nothing is resumed: call
// resume_all. May be called again to go on trying with a later deadline (after a round of the drain).
StopReport stop_all(uint64_t deadline_ns /* CLOCK_MONOTONIC */);
// Asks without waiting: sets record->stop and signals. For the agent's freeze, before the drain.
void ask_all_to_stop();
// Agent only. Lets all go on. Also the last step of a restart (threads made by restore_threads wait for it).
void resume_all();
// Agent only, all stopped: those that were met in the library come out of it when they go on.
void bring_all_back();
// True between the first stop_all/ask_all_to_stop and resume_all. Any context.
bool stop_wanted() noexcept;
// Moves at every stop and every resume of this process; interposers of waiting calls compare it to tell our
// EINTR from the application's.
const volatile uint32_t* stop_count() noexcept;

// Agent only, all stopped: fills ThreadTable::saved, tid and rseq offsets, clear_tid. Call it before the
// memory is saved. Returns warnings.
std::vector<std::string> describe_stopped_threads();

// Bridge::stop_point; see there.
extern "C" void fermata_stop_point() noexcept;

}  // namespace fermata::split::threads
