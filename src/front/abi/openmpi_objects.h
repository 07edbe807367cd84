#pragma once

#include "front/abi/objects.h"
#include "front/abi/openmpi.h"

namespace fermata::abi {

template <Kind kind>
__attribute__((always_inline)) inline front::Object* object_of(A_Word handle) noexcept {
    return is_symbol(handle) ? noted(reinterpret_cast<const Predefined*>(handle)->object, kind)
                             : front::find_dynamic(static_cast<uint32_t>(handle), kind);
}
template <Kind kind>
inline void meet(A_Word handle) noexcept {
    if (!is_symbol(handle)) return;
    auto* symbol = reinterpret_cast<Predefined*>(handle);
    note(&symbol->object, symbol->word, kind);
}

}  // namespace fermata::abi
