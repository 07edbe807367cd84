// Communicators and the collective clock: who is told of which.
#pragma once

#include "clock/types.h"
#include "front/objects/comm.h"

namespace fermata::front {

// Gives a communicator its clock (CommObject::clock), while still inside the collective that creates it;
// WORLD and SELF are registered by MPI_Init through objects_start. Members are those of clock_members().
void clock_register(CommObject& comm) noexcept;
// As the clock writes them; none is a stranger.
Vec<clock::Rank> clock_numbers(const Members& members) noexcept;
// After the real object was freed (the wrapper was inside a CollectiveScope, with a real barrier before the
// free).
void clock_unregister(CommObject& comm) noexcept;

}  // namespace fermata::front
