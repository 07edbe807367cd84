// What a file of fm_ functions starts from. They are defined in namespace fermata::front, where `front` is the context
// and not the namespace; with C linkage they are the functions that fermata_api.h declares. GCC does not carry the
// declaration's visibility over to a definition in another namespace, hence the pragmas.
#pragma once

#include "fermata_api.h"
#include "front/core/call.h"
#include "front/core/lower.h"
#include "front/objects/real.h"

#define FERMATA_ENTRIES_BEGIN _Pragma("GCC visibility push(default)") extern "C" {
#define FERMATA_ENTRIES_END \
    }                       \
    _Pragma("GCC visibility pop")

namespace fermata::front {
using namespace mpi;
}
