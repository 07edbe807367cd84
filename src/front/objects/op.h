// Reduction operations: the application's function and whether it commutes.
#pragma once

#include "front/objects/registry.h"

namespace fermata::front {

struct OpObject : Object {
    OpObject() : Object(Kind::op) {}
    void* function = nullptr;  // adapter with internal values
    void* cookie = nullptr;    // the application's function for the adapter
    bool commutes = false;
    bool large = false;  // MPI_Op_create_c: the length is an MPI_Count
    // Refs: the handle and every request that may still call the function.
    OpObject* next = nullptr;  // live user ops, any order
    OpObject* previous = nullptr;
};

inline OpObject* find_op(uint32_t handle) noexcept {
    return static_cast<OpObject*>(find_object(handle, Kind::op));
}
// A pending request keeps the op (MPI allows freeing it meanwhile).
void op_unref(OpObject* op) noexcept;

}  // namespace fermata::front
