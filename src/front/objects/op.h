// Reduction operations: the application's function and whether it commutes.
#pragma once

#include "front/objects/registry.h"

namespace fermata::front {

struct OpObject : Object {
    OpObject() : Object(Kind::op) {}
    void* function = nullptr;  // the application's function
    mpi::OpAdapter adapter = nullptr;
    bool commutes = false;
    bool freed = false;  // by the application; requests that may still call the function keep it
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
