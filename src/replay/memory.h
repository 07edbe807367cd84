// Memory of this room: whoever links it says where it comes from (the front its own heap, the tests malloc),
// as with base/invariant.h. All state is values in such memory, so a copy of a machine is a machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace fermata::replay {

// Never null; the front ends the job with one line when there is none.
void* take_memory(size_t bytes) noexcept;
void give_memory(void* block) noexcept;

template <typename T>
struct Memory {
    using value_type = T;
    Memory() noexcept = default;
    template <typename U>
    Memory(const Memory<U>&) noexcept {}
    T* allocate(size_t n) noexcept { return static_cast<T*>(take_memory(n * sizeof(T))); }
    void deallocate(T* block, size_t) noexcept { give_memory(block); }
    template <typename U>
    bool operator==(const Memory<U>&) const noexcept {
        return true;
    }
};
template <typename T>
using Vec = std::vector<T, Memory<T>>;
using Bytes = Vec<uint8_t>;

}  // namespace fermata::replay
