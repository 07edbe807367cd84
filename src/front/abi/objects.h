// From the application's handles to the objects, for the direct tier. Each ABI has
//
//     template <Kind kind> front::Object* object_of(A_X handle);      // null: not met yet, or no such object
//     template <Kind kind> void meet(A_X handle);                     // what object_of() finds from now on
//
//     front::Object* request_of(const front::HandleTable& requests, A_Request handle);
//     A_Request dynamic_handle(const front::Object* request);
//
// A predefined object lives for ever, so it is noted beside its handle when it is first met; until then
// front::no_object, which is of no kind, stands there.
#pragma once

#include "front/abi/common.h"
#include "front/objects/comm.h"

namespace fermata::abi {

__attribute__((always_inline)) inline front::Object* noted(front::Object* object, Kind kind) noexcept {
    return __builtin_expect(object->kind == kind, 1) ? object : nullptr;
}
inline void note(front::Object** place, uint32_t word, Kind kind) noexcept {
    front::Object* object = front::find_object(word, kind);
    if (object != nullptr && word < front::kPredefinedHandles) *place = object;
}

// Do the arguments that only the root's call gives count here? Between groups the root says MPI_ROOT (MPI-4.0
// 6.2.3). No MPI call, so that it may be asked within one.
inline bool is_root(const front::CommObject* comm, int root) noexcept {
    return comm->rank == root && !comm->inter;
}
inline bool is_root(Comm comm, int root) noexcept {
    const front::CommObject* c = front::find_comm(word_of(comm));
    return root == FM_ROOT || (c != nullptr && is_root(c, root));
}

}  // namespace fermata::abi
