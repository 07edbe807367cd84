// The base of all virtual objects of MPI.
//
// An object lives in the front's heap, so it is part of the image; the one thing in it that belongs to the
// lower half is `real`, the library's handle, refreshed at restart. A handle of the application is a name for
// an object: freeing the handle drops one reference, and the object stays as long as something else needs it
// (a parent datatype, a pending request, a window's communicator).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fermata_types.h"
#include "front/core/heap.h"

namespace fermata::front {

template <typename T>
using Vec = std::vector<T, FmAllocator<T>>;
using Text = std::basic_string<char, std::char_traits<char>, FmAllocator<char>>;

using mpi::Kind;
inline constexpr uint32_t kKinds = 16;

struct Object {
    uint64_t real = 0;    // the library's handle; 0 is null (none yet, or an object without one)
    uint32_t handle = 0;  // virtual handle; 0 once the application freed it
    Kind kind;
    int32_t refs = 1;         // the handle's own reference included; changed atomically
    bool predefined = false;  // never freed
    uint8_t pad[3] = {};
    constexpr explicit Object(Kind k) : kind(k) {}
};

// A global that is made at load time and never destroyed.
template <typename T>
union Immortal {
    T value;
    constexpr Immortal() : value() {}
    ~Immortal() {}
};

inline void ref(Object* object) noexcept { __atomic_fetch_add(&object->refs, 1, __ATOMIC_RELAXED); }
// Drops a reference; true when it was the last one (the caller then destroys the object).
inline bool drop(Object* object) noexcept {
    return __atomic_sub_fetch(&object->refs, 1, __ATOMIC_ACQ_REL) == 0;
}

}  // namespace fermata::front
