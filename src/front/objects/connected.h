// Processes of other worlds: what MPI_Comm_spawn, _accept, _connect and _join lead to.
//
// Such a process (a *stranger*) has no clock, no image and none of our code: it is an ordinary process of the
// real library. So a communicator with strangers in it is the library's alone: no clock counts its
// collectives, no ledger its messages, nobody pulls on it, and nothing of our own travels on it. In exchange
// no checkpoint begins while one is there (connected_refuse), and one that is on its way when a process
// becomes connected is given up. A communicator that was made so and has members of this job only is like any
// other.
#pragma once

#include "front/objects/comm.h"
#include "front/objects/uid.h"

namespace fermata::front {

bool has_stranger(const Members& members) noexcept;

// Members of one side of a real communicator.
int read_members(mpi::RealComm real, bool remote, Members* members) noexcept;
// The same list as the library numbers them: ranks of its MPI_COMM_WORLD, and strangers behind those. False:
// it names somebody with whom there is no connection any more.
bool library_numbers(const Members& members, Vec<int>* numbers) noexcept;

// Why no checkpoint can begin now, in one line; null: it can. Also called while others link and unlink
// communicators.
bool connected_refuse(char* why, size_t size) noexcept;
// A checkpoint that is on its way has to be given up. Cheap.
bool connected_now() noexcept;

// Around a call that may lead to strangers: from its first instruction on no checkpoint begins. Inside the
// CollectiveScope of the call: one that is on its way cannot freeze this process, and is given up at the
// agent's next look.
void connecting_begins(const char* function) noexcept;
void connecting_ends() noexcept;
// While a port is open no checkpoint begins, either.
void port_opened() noexcept;
void port_closed() noexcept;

// A communicator with strangers comes, and goes.
void connection_made(CommObject* comm) noexcept;
void connection_gone(CommObject* comm) noexcept;
// After communicators were freed: nobody is known any more if nobody is connected.
void connections_tidy() noexcept;

// A uid for a child of a communicator with strangers. Members of the child that are of this job agree on it
// if the child has no strangers: from then on it is a communicator like any other. Collective.
int uid_of_connected(const CommObject& made, uint64_t* uid) noexcept;

// Returns an error that names `function`: it needs the front's own messages among the members, which
// processes of another job would not understand.
int refuse_strangers(const char* function) noexcept;

}  // namespace fermata::front
