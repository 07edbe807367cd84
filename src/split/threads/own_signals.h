// Signals that wait for one thread alone, with all they carry: a timer's signal without its value is none to
// the thread of libc's that calls a timer's function.
#pragma once

#include <signal.h>

#include <string>
#include <vector>

namespace fermata::split::threads {

struct OwnSignal {
    int tid;  // of the thread
    siginfo_t info;
};

// Agent only, all stopped, after describe_stopped_threads(). Notes in ThreadTable::saved which signals wait
// for each thread; returns them with what they carry, and one line into `warnings` for each thread whose
// real-time signals the kernel does not show. The stop's own are not among them.
std::vector<OwnSignal> note_own_signals(std::vector<std::string>& warnings);

// In the process that goes on, all threads made and none of them let go. Signals that the kernel takes from
// nobody but the thread itself come without what they carry (SavedThread::pending).
void give_own_signals(const std::vector<OwnSignal>& all);

}  // namespace fermata::split::threads
