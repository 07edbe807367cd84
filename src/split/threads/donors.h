// TLS donors: upper threads borrow the thread pointer of a lower-half pthread that is parked for ever.
//
// A library of the lower half finds errno, locale and its own thread-locals through the thread pointer, so an
// upper thread needs a real lower TLS block when it crosses. Only the lower libc can make one: the agent (a
// lower thread) creates a small pthread that publishes its thread pointer and parks on a futex. Donors of
// ended threads serve again.
#pragma once

#include <cstdint>

#include "split/bridge.h"

namespace fermata::split::threads {

// ---- the agent's door bell

// Makes the bell (an eventfd numbered >= min_fd). Call once per process, before the upper half runs.
void make_bell(int min_fd);
// Readable when somebody rang; for the agent's poll set.
int bell_fd();
// Bridge::poke_agent. Any context, no TLS.
void poke_agent() noexcept;
// The agent has heard it: empties the eventfd.
void answer_bell();

// ---- the agent's side

// The agent thread presents itself: it notes itself as a lower thread, takes record kAgentIndex, points GS at
// it and blocks every signal.
void enter_agent();
// Makes the donors that upper threads wait for. The agent calls it whenever the bell rang; cheap when nothing
// is asked.
void serve_donor_requests();
// Frees the records of threads that have ended and takes their donors back.
void collect_ended_threads();
// A donor for a record that is being restored. Agent or lower main thread. Returns its thread pointer.
uint64_t donor_for(ThreadRecord* record);

// ---- the upper side
// Bridge::attach; see there.
ThreadRecord* attach(uint64_t upper_fs) noexcept;

// Number of donor pthreads alive (tests, status).
int donor_count();

}  // namespace fermata::split::threads
