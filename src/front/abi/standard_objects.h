#pragma once

#include "front/abi/objects.h"
#include "front/abi/standard.h"

namespace fermata::abi {

template <Kind kind>
__attribute__((always_inline)) inline front::Object* object_of(A_Word handle) noexcept {
    return front::find_object(in_word(handle), kind);
}
template <Kind kind>
inline void meet(A_Word) noexcept {}

}  // namespace fermata::abi
