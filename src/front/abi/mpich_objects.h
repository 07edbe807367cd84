// objects.h for MPICH's ABI: how its handles lead to objects.
#pragma once

#include "front/abi/mpich.h"
#include "front/abi/objects.h"

namespace fermata::abi {

template <Kind kind>
__attribute__((always_inline)) inline front::Object* object_of(int handle) noexcept {
    const uint32_t word = static_cast<uint32_t>(handle);
    const MapEntry& entry = kMap<kind>.entry(word);
    return __builtin_expect(entry.abi == word, 1) ? noted(entry.object, kind)
                                                  : front::find_dynamic(word, kind);
}
// No request is predefined.
__attribute__((always_inline)) inline front::Object* request_of(const front::HandleTable& requests,
                                                                A_Request handle) noexcept {
    return front::find_dynamic(requests, static_cast<uint32_t>(handle), Kind::request);
}
inline A_Request dynamic_handle(const front::Object* object) noexcept {
    return static_cast<int>(object->handle);
}
template <Kind kind>
inline void meet(int handle) noexcept {
    MapEntry& entry = kMap<kind>.entry(static_cast<uint32_t>(handle));
    if (entry.abi == static_cast<uint32_t>(handle)) note(&entry.object, entry.std, kind);
}

}  // namespace fermata::abi
