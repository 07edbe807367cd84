// Cached attributes of communicators, datatypes and windows: all upper half, callbacks included.
#pragma once

#include "front/objects/registry.h"

namespace fermata::front {

// Which functions a keyval calls.
enum class Owner : uint32_t { comm, type, win };

struct KeyvalObject : Object {
    KeyvalObject() : Object(Kind::keyval) {}
    Owner owner = Owner::comm;
    void* copy = nullptr;  // the application's function, or one of the standard's special ones
    void* remove = nullptr;
    mpi::CopyAdapter copy_adapter = nullptr;
    mpi::DeleteAdapter remove_adapter = nullptr;
    void* extra_state = nullptr;
    mpi::AttrLanguage language = mpi::AttrLanguage::c;  // the form in which the adapters want values
    // Refs: 1 for the handle and 1 for each attribute set with it. Freeing again while an attribute still
    // holds the keyval is no error: MPICH takes it, and delete callbacks of programs do it.
    bool freed = false;
};

struct Attribute {
    KeyvalObject* keyval;
    void* value;                 // as it was set
    mpi::AttrLanguage language;  // by whom
    int64_t cell;                // what a C caller gets a pointer to when Fortran set the value
};
// Pointers, because a C caller may hold the address of a cell for as long as the attribute is set.
using Attributes = Vec<Attribute*>;

// The object that carries them, for the callbacks: its handle.
struct Carrier {
    Owner owner;
    uint32_t handle;
};

inline KeyvalObject* find_keyval(int keyval) noexcept {
    return static_cast<KeyvalObject*>(find_object(static_cast<uint32_t>(keyval), Kind::keyval));
}

int keyval_create(Owner owner, void* copy, mpi::CopyAdapter copy_adapter, void* remove,
                  mpi::DeleteAdapter remove_adapter, void* extra_state, mpi::AttrLanguage language) noexcept;
// From here on error classes.
int keyval_free(Owner owner, int* keyval) noexcept;
int attribute_set(Carrier carrier, Attributes* attributes, int keyval, void* value,
                  mpi::AttrLanguage language) noexcept;
int attribute_get(Owner owner, const Attributes& attributes, int keyval, void* attribute_val, int* flag,
                  mpi::AttrLanguage language) noexcept;
int attribute_delete(Carrier carrier, Attributes* attributes, int keyval) noexcept;
// Writes a value where a getter of that language wants it.
void write_value(void* attribute_val, void* value, mpi::AttrLanguage reader) noexcept;

// Reads the library's own attributes of communicators, once in a job.
void world_attributes_start() noexcept;
// One of them, from FM_TAG_UB to FM_UNIVERSE_SIZE: where its value is; false: this library has none.
bool world_attribute(int keyval, int** cell) noexcept;
// Copies those whose callback says so from one object to its duplicate; the first error stops and is
// returned.
int attributes_copy(Carrier from, const Attributes& source, Attributes* target) noexcept;
// Runs the delete callbacks, last set first; stops at the first error (that attribute and the earlier ones
// stay).
int attributes_delete_all(Carrier carrier, Attributes* attributes) noexcept;

}  // namespace fermata::front
