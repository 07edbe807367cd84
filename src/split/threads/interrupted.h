// System calls that the stop signal cut short, and how to hide it.
//
// Most are restarted by the kernel (SA_RESTART). Those of `man 7 signal`, "never restarted", return EINTR,
// which a program would not see without Fermata. Where the arguments still say exactly what to wait for, the
// call is issued again: the instruction pointer goes back onto the `syscall` instruction. The kernel does not
// keep the call's number in the frame; it comes from /proc/self/task/T/syscall, read before the signal, or,
// for a thread that was not in the call by then, from the code (`mov $number,%eax; syscall`) or the stack.
#pragma once

#include <ucontext.h>

#include <cstdint>

#include "split/bridge.h"

namespace fermata::split::threads {

// Agent: notes what the thread is blocked in now, for the handler. Also answers where it waits, for
// diagnosis: the number of the system call, -1 = running or unknown.
int sample_system_call(int index, int tid) noexcept;

// Does the thread, by the last sample, wait in rt_sigtimedwait for a set that holds the stop signal? Agent.
bool awaits_stop_signal(int index) noexcept;

// Would issuing call `number` again with these registers be exact? (No relative timeout whose rest is
// unknown.)
bool may_issue_again(long number, const greg_t* registers) noexcept;

// In the stop handler: when the frame shows an interrupted call that may be issued again, rewinds the frame
// and returns the number; else -1. No TLS.
int rewind_interrupted(int index, ucontext_t* frame) noexcept;

// The thread is about to go on. If a signal that it does not block has come meanwhile, the call must not wait
// any more: EINTR after all, as the application's handler will have run. No TLS; all signals are blocked.
void undo_rewind_if_signalled(int number, ucontext_t* frame) noexcept;

}  // namespace fermata::split::threads
