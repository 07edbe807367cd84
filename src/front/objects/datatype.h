// Datatypes: the constructor tree, from which the real type is made again at restart.
#pragma once

#include "front/objects/attribute.h"

namespace fermata::front {

struct TypeObject : Object {
    TypeObject() : Object(Kind::datatype) {}
    int32_t combiner = 0;  // standard ABI MPI_COMBINER_*
    bool committed = false;
    bool large = false;      // made by a _c constructor whose arguments do not fit the small one
    bool permanent = false;  // f90 types: like predefined ones, the application must not free them
    int32_t owned = 1;  // references the application holds (MPI_Type_get_contents adds some); part of refs
    Text name;
    Attributes attributes;
    // The arguments of the constructor, in the order of MPI_Type_get_contents.
    Vec<int64_t> ints;       // integers (and, for large ones, counts)
    Vec<int64_t> aints;      // addresses
    Vec<TypeObject*> types;  // each holds a reference
    // Layout in bytes, as the library that first made it said; kept the same for ever (see rebuild).
    int64_t size = 0, lb = 0, extent = 0, true_lb = 0, true_extent = 0;
    int64_t elements = 0;  // basic elements in one of it
    int64_t first = 0;     // pair types: bytes of the first element; 0: not a pair
    // All derived types in creation order (children before parents).
    TypeObject* next = nullptr;
    TypeObject* previous = nullptr;
    TypeObject* next_real = nullptr;  // chain of the real -> virtual table
};

inline TypeObject* find_type(uint32_t handle) noexcept {
    return static_cast<TypeObject*>(find_object(handle, Kind::datatype));
}
// The virtual type of a real handle, for callbacks of user ops; null if it is none of ours.
TypeObject* find_type_of_real(uint64_t real) noexcept;
// A pending request or a parent keeps a type that the application frees; no-ops for predefined types.
inline void type_ref(TypeObject* type) noexcept {
    if (!type->predefined) ref(type);
}
void type_unref(TypeObject* type) noexcept;

// Basic elements among the first `bytes` bytes of a message of this type; -1 (undefined) when they end inside
// one.
int64_t type_elements_in(const TypeObject& type, int64_t bytes) noexcept;
// The reverse: bytes of the first `elements` basic elements.
int64_t type_bytes_of(const TypeObject& type, int64_t elements) noexcept;
// Sets `size` and `elements` of a derived type from its description and its children.
void type_count(TypeObject* type) noexcept;

// The answer of MPI_Type_get_envelope for this description.
struct Envelope {
    int64_t integers, addresses, counts, types;
};
Envelope type_envelope(const TypeObject& type) noexcept;

}  // namespace fermata::front
