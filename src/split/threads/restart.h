// Threads of the upper half after a restart: the memory is back, the kernel threads are new.
//
// Order in the lower main program: install_stop_handler, adopt_table, [agent thread: enter_agent],
// restore_threads, process::restore, rebuild of MPI objects, agent: resume_all, main thread: continue_main.
#pragma once

#include <string>
#include <vector>

#include "split/bridge.h"

namespace fermata::split::threads {

// Lower main thread, before the upper half starts for the first time: gives back what the lower libc
// registered with the kernel for this thread and the upper libc registers again (rseq).
void release_main_thread();

struct RestoreReport {
    std::string error;                  // empty = all restored
    std::vector<std::string> warnings;  //
    int threads = 0;                    // made, the main thread not counted
};

// Can frames captured on the CPU that wrote the image continue here? Adapts frames whose unused components
// differ. Empty, or one line that names what is missing. Lower main thread, after adopt_table.
std::string fit_frames_to_cpu();

// Makes a kernel thread for every stopped record but the main one. They wait for resume_all. Lower main
// thread.
RestoreReport restore_threads();

// The calling (lower main) thread becomes the upper main thread: waits for resume_all, then continues where
// the main thread was captured. Never returns. If the main thread had ended (pthread_exit in main), the
// kernel thread ends.
[[noreturn]] void continue_main();

}  // namespace fermata::split::threads
