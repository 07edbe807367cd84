// Entries of point-to-point in a job that keeps a message log (src/front/logged): what they do there in place
// of the library's calls.
//
// The bit kLogged of Front::careful sends all calls to the entries that are Calls, and there
// `if (logged::on())` leads to these.
#pragma once

#include "front/core/recorded.h"
#include "front/requests/request.h"

namespace fermata::front::logged {

struct Part;

inline bool on() noexcept { return keeps_log(); }
// Ends the job in one line: a call that the log does not know.
[[noreturn]] void refuse(const char* function) noexcept;

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

int start_persistent(Call& call, RequestObject* r) noexcept;
void drop(Part* part) noexcept;

// Sees to what the library still works on for the log's sake, and to receipts. Inside any wait.
void progress() noexcept;
// MPI_Finalize: true of a rank (not of its copy) once nobody else needs anything of its log.
bool may_arrive() noexcept;
// All ranks have arrived: takes what others have said of their logs until then.
void read_last() noexcept;

}  // namespace fermata::front::logged
