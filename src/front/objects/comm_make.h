// The steps every creation of a communicator is made of.
#pragma once

#include "fermata_types.h"
#include "front/objects/comm.h"
#include "front/objects/connected.h"

namespace fermata::front {

// A number no other process ever makes.
uint64_t fresh_uid() noexcept;
// An object for a fresh real communicator. Members are asked from the library unless they are known to be
// those of another communicator.
int comm_adopt(mpi::RealComm real, bool inter, const CommObject* same_members, CommObject** made) noexcept;
// Fills in everything that follows from who is in it.
void comm_set_sides(CommObject* comm, Members&& members, Members&& remote) noexcept;
// Gives it uid, handle and clock; from here on it can be used. Still inside the scope of the creation.
void comm_publish(CommObject* comm, uint64_t uid, ErrhandlerObject* errhandler) noexcept;
uint64_t derived_uid(CommObject& parent, const CommObject& child, uint64_t creation) noexcept;
// The uid of a child made by a creation on `parent`. Collective over the child if the parent has strangers.
int child_uid(CommObject& parent, CommObject* child, uint64_t creation, uint64_t* uid) noexcept;

}  // namespace fermata::front
