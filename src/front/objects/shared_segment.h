// Memory that the processes of a node share, owned by the upper half (MPI_Win_allocate_shared).
//
// The library's own shared windows live in the lower half and would be lost. Here the first member makes a
// file in /dev/shm, all map it, and its name is removed at once. The image of each process holds a copy of
// the pages; at restart a new file is made, each process brings its own part, and the new pages move to the
// old address.
#pragma once

#include "front/objects/win.h"

namespace fermata::front {

// Collective over the window's private communicator (its real one): learns everybody's part, maps the
// segment.
int segment_make(CommObject* comm, int64_t size, int32_t unit, SharedSegment** made) noexcept;
// The same at restart: pages that are shared again, at the same address, with the same content. Agent
// context.
int segment_make_again(CommObject* comm, SharedSegment* segment) noexcept;
void segment_drop(SharedSegment* segment) noexcept;

}  // namespace fermata::front
