// Data of the program as packed bytes, and back: the form in which the log keeps it. Both libraries pack
// alike: the elements of the type map one behind the other.
#pragma once

#include "front/objects/real.h"
#include "replay/memory.h"

namespace fermata::front::logged {

// So many elements of a type at an address.
struct Block {
    void* at = nullptr;
    int64_t count = 0;
    TypeObject* type = nullptr;
    int64_t bytes() const { return type != nullptr ? count * type->size : 0; }
};

// Appends the block's data.
void pack(const Block& block, replay::Bytes* out) noexcept;
// Puts `size` bytes there, which may be fewer than the block has room for.
void unpack(const Block& block, const uint8_t* data, int64_t size) noexcept;

}  // namespace fermata::front::logged
