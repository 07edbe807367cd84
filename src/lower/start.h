// What every start of a lower half does, a program's first one, a restart's and a child's (second_life.h).
#pragma once

#include "image/image.h"
#include "lower/mpi_start.h"
#include "tree/agent_link.h"

namespace fermata::lower {

// Returns the key of the images, null without one. Throws fermata::Error when it is another one than
// `fermata run` has read.
image::KeyPointer image_key(const tree::AgentConfig& config);
// Lets the node daemon know of the shared memory that the library is about to make.
void note_shared_names(const tree::AgentConfig& config);
// Starts MPI, between begin_descriptors() and partition(). Throws fermata::Error.
MpiFacts bring_up_mpi(ThreadNeed need);

}  // namespace fermata::lower
