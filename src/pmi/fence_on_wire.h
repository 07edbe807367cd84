// A fence travels between node daemons and root as a wire::Fence; these two functions make one of the other.
#pragma once

#include "pmi/fence.h"
#include "wire/message.h"

namespace fermata::pmi {

wire::Fence on_wire(const Fence& fence);
// A range that no job has becomes a fault of the fence.
Fence from_wire(const wire::Fence& said);

}  // namespace fermata::pmi
