// A file of fm_ functions starts from this header. They are defined in namespace fermata::front, where
// `front` is the context and not the namespace; with C linkage they are the functions that fermata_api.h
// declares.
#pragma once

#include "fermata_api.h"
#include "front/core/call.h"
#include "front/core/lower.h"
#include "front/objects/real.h"

namespace fermata::front {
using namespace mpi;
}
