// The message log of a rank: MPI's calls on one side, the machine of src/replay on the other, the library
// below (docs/internals/message-log.md).
//
// In a job that keeps one, the bit kLogged of Front::careful sends all calls of point-to-point to the entries
// that are Calls, and no_direct_clock those of collectives; there `if (logged::on())` leads here. One thread
// of the program at a time calls MPI, and the agent only while all threads stand: no locks.
#pragma once

#include "front/core/call.h"
#include "front/core/library_lock.h"
#include "front/logged/part.h"
#include "front/requests/exchange.h"
#include "front/requests/nonblocking.h"

namespace fermata::front::logged {

inline bool on() noexcept { return __builtin_expect((front.careful & kLogged) != 0, 0); }

// In MPI_Init, once MPI_COMM_WORLD is there.
void start() noexcept;
// Ends the job in one line: a call that the log does not know.
[[noreturn]] void refuse(const char* function) noexcept;

// ---- entries (an error class each)

// Starts a described operation. On an error it goes back to the pool, unless it is persistent.
int begin(Call& call, RequestObject* r) noexcept;
// Starts, waits and ends an operation of a blocking call.
int run_blocking(Call& call, RequestObject* r, mpi::Status* status) noexcept;
int sendrecv(Call& call, RequestObject* send, RequestObject* receive, mpi::Status* status) noexcept;
// MPI_Probe and MPI_Iprobe. `waits`: until there is one.
int probe(Call& call, CommObject* comm, int source, int tag, bool waits, bool* found,
          mpi::Status* status) noexcept;
// MPI_Mprobe and MPI_Improbe receive at once: `message` has the bytes.
int matched_probe(Call& call, CommObject* comm, int source, int tag, bool waits, QueuedMessage** message,
                  mpi::Status* status) noexcept;

// Waits until all of them may be consumed (null ones and inactive ones are ignored).
void wait_all(Call& call, RequestObject* const* requests, int count) noexcept;
// Waits for one: its place; -1: there is none to wait for.
int wait_any(Call& call, RequestObject* const* requests, int count) noexcept;
// All that are complete, at least one if there is any; `done` has a flag for each.
void wait_some(Call& call, RequestObject* const* requests, int count, bool* done) noexcept;
// Likewise, looking once.
bool test_all(Call& call, RequestObject* const* requests, int count) noexcept;
int test_any(Call& call, RequestObject* const* requests, int count) noexcept;
void test_some(Call& call, RequestObject* const* requests, int count, bool* done) noexcept;
// MPI_Request_free of an active one.
void free_active(Call& call, RequestObject* r) noexcept;

// A blocking collective: `native` is the library's blocking call (context, result), `twin` the record of the
// non-blocking one. Takes both.
struct Native {
    const void* context;
    int (*call)(const void* context);
};
int collective(Call& call, CommObject* comm, Part* part, CollectiveRecord* twin, Native native) noexcept;
template <typename F>
int collective(Call& call, CommObject* comm, Part* part, CollectiveRecord* twin, const F& native) noexcept {
    return collective(call, comm, part, twin,
                      Native{&native, [](const void* f) { return (*static_cast<const F*>(f))(); }});
}
int begin_collective(Call& call, CommObject* comm, Part* part, CollectiveRecord* record,
                     mpi::Request* request) noexcept;
int start_persistent(Call& call, RequestObject* r) noexcept;

// ---- creation of communicators

// Of one on `parent`; waits until it is told. `native` makes it (Native::call) and leaves it in the part:
// part->made. Null in *made: this process is not in it.
int create(Call& call, CommObject* parent, Part::Asked asked, const Native& native,
           CommObject** made) noexcept;
// The part of the creation that is under way.
Part* creation_now() noexcept;
void leave(Call& call, CommObject* comm) noexcept;  // MPI_Comm_free

// ---- in passing

// What the library still works on for the log's sake, and receipts. Inside any wait.
void progress() noexcept;
// MPI_Finalize: true once nobody else needs anything of this rank's log.
bool has_paid() noexcept;

// ---- all threads stand, or there are none yet

size_t said(void* bytes, size_t capacity) noexcept;
const char* take_orders(const void* bytes, size_t size) noexcept;
// After the objects: gives the new library what the old one had. 0, or 1 and a line.
int rebuild(char* error, size_t size) noexcept;
void go(uint32_t epoch) noexcept;
// What the exchange said; null: no hop is under way.
const replay::Orders* orders() noexcept;

}  // namespace fermata::front::logged
