// objects.h for the standard ABI: how its handles lead to objects.
#pragma once

#include "front/abi/objects.h"
#include "front/abi/standard.h"

namespace fermata::abi {

template <Kind kind>
__attribute__((always_inline)) inline front::Object* object_of(A_Word handle) noexcept {
    return front::find_object(in_word(handle), kind);
}
// No request is predefined.
__attribute__((always_inline)) inline front::Object* request_of(const front::HandleTable& requests,
                                                                A_Request handle) noexcept {
    return front::find_dynamic(requests, in_word(handle), Kind::request);
}
inline A_Request dynamic_handle(const front::Object* object) noexcept { return object->handle; }
template <Kind kind>
inline void meet(A_Word) noexcept {}

}  // namespace fermata::abi
