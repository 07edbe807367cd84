// From the application's handles to the objects, for the short forms. Each ABI has
//
//     template <Kind kind> front::Object* object_of(A_X handle);      // null: not met yet, or no such object
//     template <Kind kind> void meet(A_X handle);                     // what object_of() finds from now on
//
// A predefined object lives for ever, so it is noted beside its handle when it is first met; until then
// front::no_object, which is of no kind, stands there.
#pragma once

#include "front/abi/common.h"
#include "front/objects/registry.h"

namespace fermata::abi {

__attribute__((always_inline)) inline front::Object* noted(front::Object* object, Kind kind) noexcept {
    return __builtin_expect(object->kind == kind, 1) ? object : nullptr;
}
inline void note(front::Object** place, uint32_t word, Kind kind) noexcept {
    front::Object* object = front::find_object(word, kind);
    if (object != nullptr && word < front::kPredefinedHandles) *place = object;
}

}  // namespace fermata::abi
