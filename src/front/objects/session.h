// Sessions: a view of the job's processes. They own nothing of the library, so a restart has nothing to do
// for them.
#pragma once

#include "front/objects/errhandler.h"

namespace fermata::front {

struct SessionObject : Object {
    SessionObject() : Object(Kind::session) {}
    ErrhandlerObject* errhandler = nullptr;
    int thread_level = 0;
};

inline SessionObject* find(mpi::Session h) noexcept {
    return static_cast<SessionObject*>(find_object(static_cast<uint32_t>(h), Kind::session));
}

// Value of the hint "thread_level", or `otherwise`.
int level_named(mpi::Info info, int otherwise) noexcept;
const char* name_of_level(int value) noexcept;

}  // namespace fermata::front
