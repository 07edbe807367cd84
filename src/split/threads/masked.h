// Threads that have blocked the stop signal, by the raw system call: nothing that a process sends itself
// reaches them. They are traced for a moment (traced.h) and the signal is taken out of their masks; the stop
// handler puts it back into the mask that the thread goes on with.
#pragma once

#include <ucontext.h>

#include <cstdint>
#include <vector>

#include "split/threads/traced.h"

namespace fermata::split::threads {

// Agent only. Takes the stop signal out of the masks of these threads and sends it to them.
void open_to_stop(std::vector<TracedThread> threads);

// Leaves all of them as they are while this says so: one may be in a section of ours that no image may show
// half done. Asked while the thread stands, by the helper: no libc that may wait or allocate.
void never_open_while(bool (*in_section)()) noexcept;

// Why the thread with this record was not opened the last time: -errno of ptrace, -ETIMEDOUT; 0: nothing
// known.
int not_opened(int index) noexcept;
// A new stop begins.
void forget_not_opened() noexcept;

// True while a thread that was opened has not met the stop handler yet. No TLS.
bool somebody_open() noexcept;
// In the stop handler, whether it captures the thread or lets it go on: with the mask that it had. No TLS.
void mask_again(int index, ucontext_t* frame) noexcept;

}  // namespace fermata::split::threads
