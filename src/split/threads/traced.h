// Threads of this process traced for a moment, by a process of ours that shares its memory: for what no
// thread can do to another one by signals, nor ask /proc for.
#pragma once

#include <vector>

namespace fermata::split::threads {

struct TracedThread {
    int tid;
    int index;      // by which the caller knows it
    int error = 0;  // -errno of ptrace or of the act, -ETIMEDOUT; 0: done, or it has ended
};

// Done while the thread stands, in the helper, with the agent's thread pointer: no libc that may wait or
// allocate. Returns 0 or -errno.
using WhileItStands = long (*)(const TracedThread& thread, void* context);

long trace(long request, int tid, long address = 0, long data = 0);

// Agent only, which stands meanwhile. Each goes on afterwards, with the signal that it was about to get.
// Takes up to a quarter of a second when one is in the kernel and cannot be interrupted.
void trace_each(std::vector<TracedThread>& threads, WhileItStands act, void* context);

}  // namespace fermata::split::threads
