#pragma once

#include "front/abi/objects.h"
#include "front/abi/openmpi.h"

namespace fermata::abi {

template <Kind kind>
__attribute__((always_inline)) inline front::Object* object_of(A_Word handle) noexcept {
    if (__builtin_expect(handle >> 32 == 0, 0)) {
        if (handle >> 31 != 0) return front::find_dynamic(static_cast<uint32_t>(handle), kind);
        if (handle < 4096) return nullptr;
    }
    return noted(reinterpret_cast<const Predefined*>(handle)->object, kind);
}
template <Kind kind>
inline void meet(A_Word handle) noexcept {
    if (handle < 4096 || handle >> 31 == 1) return;
    auto* symbol = reinterpret_cast<Predefined*>(handle);
    note(&symbol->object, symbol->word, kind);
}

}  // namespace fermata::abi
