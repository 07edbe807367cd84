// Cached attributes of communicators, datatypes and windows: all upper half, callbacks included.
#pragma once

#include "front/objects/registry.h"

namespace fermata::front {

// Which functions a keyval calls.
enum class Owner : uint32_t { comm, type, win };

struct KeyvalObject : Object {
    KeyvalObject() : Object(Kind::keyval) {}
    Owner owner = Owner::comm;
    void* copy = nullptr;         // mpi::CommCopyAttr* and friends: functions with internal values (adapters)
    void* remove = nullptr;       // mpi::CommDeleteAttr* and friends
    void* copy_cookie = nullptr;  // what the adapter needs to find the application's own function
    void* remove_cookie = nullptr;
    void* extra_state = nullptr;
    // refs: 1 for the handle and 1 for each attribute set with it
};

struct Attribute {
    KeyvalObject* keyval;
    void* value;
};
using Attributes = Vec<Attribute>;

// The object that carries them, for the callbacks: its handle.
struct Carrier {
    Owner owner;
    uint32_t handle;
};

// Copies those whose callback says so from one object to its duplicate; the first error stops and is returned.
int attributes_copy(Carrier from, const Attributes& source, Attributes* target) noexcept;
// Runs the delete callbacks, last set first; stops at the first error (that attribute and the earlier ones stay).
int attributes_delete_all(Carrier carrier, Attributes* attributes) noexcept;

}  // namespace fermata::front
