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
#include "front/requests/logged.h"
#include "front/requests/nonblocking.h"

namespace fermata::front::logged {

extern split::LogSize log_size;  // for the agent

// In MPI_Init, once MPI_COMM_WORLD is there.
void start() noexcept;
// ---- collectives

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

// The request of MPI_Xxx_init.
int init_collective(Call& call, CommObject* comm, Part* part, CollectiveRecord* record,
                    mpi::Request* request) noexcept;

// ---- creation of communicators

// Makes one on `parent`; waits until it is told. `native` makes it (Native::call) and leaves it in the part:
// part->made. Null in *made: this process is not in it.
int create(Call& call, CommObject* parent, Part::Asked asked, const Native& native,
           CommObject** made) noexcept;
// The part of the creation that is under way.
Part* creation_now() noexcept;
void leave(Call& call, CommObject* comm) noexcept;  // MPI_Comm_free

// ---- all threads stand, or there are none yet

size_t said(void* bytes, size_t capacity) noexcept;
const char* take_orders(const void* bytes, size_t size) noexcept;
// After the objects: gives the new library what the old one had. 0, or 1 and a line.
int rebuild(char* error, size_t size) noexcept;
void go(uint32_t epoch) noexcept;
// A copy is made of this process now (null, or why not), is gone, and: this process is the copy.
const char* begin_copy() noexcept;
void copy_is_gone() noexcept;
void be_copy() noexcept;
// The same of a copy on another node, of which this process is an image: its stream is in this file.
const char* begin_copy_elsewhere(int descriptor) noexcept;
const char* be_copy_elsewhere(int descriptor) noexcept;
// Orders of the exchange; null: no hop is under way.
const replay::Orders* orders() noexcept;

}  // namespace fermata::front::logged
