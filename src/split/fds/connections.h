// connections() counts the ends of connections that the MPI library comes upon. In a job with a message log
// they are hidden from it until all ranks are seen to live: libraries complete what they cannot. MPICH 4.0.2
// (ch4:ucx) gives back receives and blocking collectives whose peer has died as if all were well, and sends
// such results on; Open MPI 5 (btl/tcp) ends the process.
#pragma once

#include "split/bridge.h"

namespace fermata::split {

Connections& connections() noexcept;

// From now on the library hears of no end that may be a rank's, or again of all. `handshakes`: nor in recv()
// and send(). Open MPI's btl/tcp makes its connections by these, and asks again without a rest; that the peer
// is gone there is no error of the library's, so it hears of an end, and what it sends is as if it were sent.
void hide_ends(bool hide, bool handshakes = true) noexcept;

// Gives what the library is told of a call on a socket: `result` (as the kernel's; 0 of one that reads: the
// end), or -EAGAIN, as if nothing had come. `flags`: of the call.
long end_as_told(int fd, long result, int flags) noexcept;
// The same of recv(), and of send() of `size` bytes.
long end_as_received(int fd, long result, int flags) noexcept;
long end_as_sent(int fd, long result, int flags, uint64_t size) noexcept;
// An end of this descriptor's is hidden now: it has been asked for, and was not told.
bool end_is_hidden(int fd) noexcept;
// The same of a call that takes `wanted` bytes out of another rank's memory, or puts them there: -ESRCH of
// one that has died. Hidden, it is as if all had been taken: UCX 1.13 (cma) ends the process for anything
// less.
long memory_as_told(long result, uint64_t wanted) noexcept;
// A connection could not be made, which is told at once. Libraries try several addresses of a peer, of which
// some lead nowhere (ENETUNREACH): the network is not broken for that.
void note_refusal(int fd, long result) noexcept;
// There is a new connection, or another descriptor of this number.
void is_new(int fd) noexcept;

}  // namespace fermata::split
