// Where the root's part of the message log (replay::Exchange) has its memory from: the heap.
#include <cstdlib>

#include "replay/memory.h"

namespace fermata::replay {

void* take_memory(size_t bytes) noexcept {
    void* block = std::malloc(bytes ? bytes : 1);
    if (block == nullptr) std::abort();
    return block;
}

void give_memory(void* block) noexcept { std::free(block); }

}  // namespace fermata::replay
