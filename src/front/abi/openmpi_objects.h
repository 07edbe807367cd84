// objects.h for Open MPI's ABI: how its handles lead to objects.
#pragma once

#include "front/abi/objects.h"
#include "front/abi/openmpi.h"

namespace fermata::abi {

template <Kind kind>
__attribute__((always_inline)) inline front::Object* object_of(A_Word handle) noexcept {
    return is_symbol(handle) ? noted(reinterpret_cast<const Predefined*>(handle)->object, kind)
                             : front::find_dynamic(static_cast<uint32_t>(handle), kind);
}
// No request is predefined.
__attribute__((always_inline)) inline front::Object* request_of(const front::HandleTable& requests,
                                                                A_Request handle) noexcept {
    return front::find_dynamic(requests, static_cast<intptr_t>(handle), Kind::request);
}
inline A_Request dynamic_handle(const front::Object* object) noexcept {
    return static_cast<A_Word>(intptr_t{static_cast<int32_t>(object->handle)});
}
template <Kind kind>
inline void meet(A_Word handle) noexcept {
    if (!is_symbol(handle)) return;
    auto* symbol = reinterpret_cast<Predefined*>(handle);
    note(&symbol->object, symbol->word, kind);
}

}  // namespace fermata::abi
