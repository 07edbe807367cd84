// The rest of a process in a child that is to go on in its place: what fork() does not hand over, and what a
// second lower half cannot find out. The other way to go on, a restart from an image, is in state.h.
#pragma once

#include <string>
#include <vector>

#include "split/process/state.h"

namespace fermata::split::process {

// Signals that wait for a process as a whole, each as the bytes of its siginfo_t.
using Signals = std::vector<std::string>;

struct ForChild {
    std::string state;                  // for restore_in_child() and restore_timers()
    std::string notes;                  // for resume_notes()
    Signals waiting;                    // those that `state` holds
    std::vector<int> descriptors;       // of the lower half's, that the child needs
    std::vector<std::string> warnings;  // one line each
};
// Called by the agent while every thread of the program stands. Throws fermata::Error for what no child can
// have: locks, children and descriptors of this process, and all that no image can hold.
ForChild prepare_child(const Limits& limits);

// Lists what waits for this process, which keeps it.
Signals waiting_signals();
// The signal that a child's end by SIGKILL would bring.
std::string signal_of_end(int child);
// Takes out what has come since `before`, for queue_signals() in the child, but for signals of timers: the
// child has those timers. `ids`: by which senders are named.
Signals take_signals_since(Signals before, const ids::Table* ids);
void queue_signals(const Signals& all, const ids::Table* ids);

// In the child, while the library below starts and waits for those of ranks that may be gone: nobody reads
// the socket to the process that waits for this one, so the kernel ends this one with its other end, or with
// the first byte that comes.
void end_with_peer(int socket, bool on);

// In the child: before anything else of this room, and with all threads made.
void resume_notes(const std::string& notes);
Restored restore_in_child(const std::string& state, const Limits& limits);

}  // namespace fermata::split::process
