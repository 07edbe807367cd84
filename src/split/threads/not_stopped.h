// Describes in one phrase, from /proc, a thread that has not been stopped.
#pragma once

#include <cstdint>
#include <string>

#include "split/threads/stop.h"

namespace fermata::split::threads {

// /proc/self/task/TID/NAME; empty when the thread has gone.
std::string task_file(int tid, const char* name);
// A line such as "SigBlk:\t0000000000000000" of its status.
uint64_t status_mask(const std::string& status, const char* key);

// "in MPI_Send, waiting for rank 3", or outside MPI: "thread 4711 (gc) blocks signal 64 …, state R, at
// libfoo.so+0x12345 …". Agent.
NotStopped why_not_stopped(int tid, ThreadRecord* record);

}  // namespace fermata::split::threads
